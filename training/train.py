"""Cut the teacher (all-MiniLM-L6-v2) down to a small encoder, distilling at every step.

The student starts as some of the teacher's own layers and its table, factorised. While it
learns the teacher's vectors, the heads and feed-forward neurons that matter least are taken
out step by step, until a budget of weights is met. PyTorch and a GPU are needed here only.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from measure import load_sets, summarise

WIDTH, HEAD, WINDOW = 384, 32, 256
TEMPERATURE = 0.05
BUCKETS = (12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
TOKENS_PER_SIDE = 110_000
MAX_PAIRS = 2048
DEVICE = "cuda"


# -- texts


def tokenise(folder: Path) -> dict[str, np.ndarray]:
    """Token ids of all pairs: one flat array, where each side starts, and the kind."""
    kept = folder / "tokens.npz"
    if kept.is_file():
        return dict(np.load(kept))
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(WINDOW)
    kinds, sides = [], ([], [])
    with lzma.open(folder / "texts.tsv.xz", "rt", encoding="utf-8") as file:
        for line in file:
            kind, left, right = line.rstrip("\n").split("\t")[:3]
            kinds.append(kind == "F")
            sides[0].append(left)
            sides[1].append(right)
    rows = [tokenizer.encode_batch_fast(side) for side in sides]
    made: dict[str, np.ndarray] = {"foreign": np.array(kinds)}
    for name, encoded in zip(("left", "right"), rows, strict=True):
        lengths = np.array([len(one.ids) for one in encoded])
        made[name + "_start"] = np.concatenate([[0], lengths.cumsum()])
        made[name] = np.fromiter((i for one in encoded for i in one.ids), np.uint16, lengths.sum())
    np.savez(folder / "tokens-part.npz", **made)
    (folder / "tokens-part.npz").replace(kept)
    return made


class Batches:
    """Batches of pairs of one kind and similar length, in random order, without end."""

    def __init__(self, tokens: dict[str, np.ndarray], seed: int, foreign_share: float) -> None:
        self.random = np.random.default_rng(seed)
        self.rows = {
            side: torch.from_numpy(tokens[side].astype(np.int32)).to(DEVICE)
            for side in ("left", "right")
        }
        self.starts = {
            side: torch.from_numpy(tokens[side + "_start"]).to(DEVICE) for side in ("left", "right")
        }
        lengths = np.stack([np.diff(tokens[side + "_start"]) for side in ("left", "right")])
        self.lengths = lengths
        self.pools: dict[bool, list[np.ndarray]] = {}
        widest = lengths.max(axis=0)
        for foreign in (False, True):
            mine = np.flatnonzero(tokens["foreign"] == foreign)
            slots = np.searchsorted(BUCKETS, widest[mine])
            self.pools[foreign] = [mine[slots == slot] for slot in range(len(BUCKETS))]
        self.foreign_share = foreign_share

    def __iter__(self) -> Iterator[tuple[bool, list[tuple[torch.Tensor, torch.Tensor]]]]:
        plans: dict[bool, list[np.ndarray]] = {False: [], True: []}
        while True:
            foreign = bool(self.random.random() < self.foreign_share)
            if not plans[foreign]:
                plans[foreign] = self.plan(foreign)
            chosen = plans[foreign].pop()
            yield foreign, [self.side(side, chosen) for side in ("left", "right")]

    def plan(self, foreign: bool) -> list[np.ndarray]:
        found = []
        for bucket, pool in zip(BUCKETS, self.pools[foreign], strict=True):
            size = min(MAX_PAIRS, TOKENS_PER_SIDE // bucket)
            order = self.random.permutation(pool)
            found += [order[at : at + size] for at in range(0, len(order) - 255, size)]
        order = self.random.permutation(len(found))
        return [found[place] for place in order if len(found[place]) >= 256]

    def side(self, side: str, chosen: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        row = 0 if side == "left" else 1
        width = int(-(-int(self.lengths[row][chosen].max()) // 8) * 8)
        places = torch.from_numpy(chosen).to(DEVICE)
        start = self.starts[side][places]
        size = self.starts[side][places + 1] - start
        at = torch.arange(width, device=DEVICE)
        mask = at < size[:, None]
        index = (start[:, None] + at).clamp_(max=len(self.rows[side]) - 1)
        return torch.where(mask, self.rows[side][index], 0).long(), mask


# -- networks


class Layer(nn.Module):
    """One layer of a BERT, with gates whose gradients tell how much a part matters."""

    def __init__(self, weights: dict[str, torch.Tensor], name: str) -> None:
        super().__init__()
        for mine, theirs in {
            "q": "attention.self.query", "k": "attention.self.key",
            "v": "attention.self.value", "o": "attention.output.dense",
            "ln1": "attention.output.LayerNorm", "fi": "intermediate.dense",
            "fo": "output.dense", "ln2": "output.LayerNorm",
        }.items():  # fmt: skip
            for part, short in (("weight", "w"), ("bias", "b")):
                tensor = weights[f"{name}{theirs}.{part}"].clone()
                self.register_parameter(f"{mine}_{short}", nn.Parameter(tensor))
        self.reset_gates()

    def reset_gates(self) -> None:
        self.head_gate = torch.ones(len(self.q_w) // HEAD, device=DEVICE, requires_grad=True)
        self.inner_gate = torch.ones(len(self.fi_w), device=DEVICE, requires_grad=True)
        self.head_score = torch.zeros_like(self.head_gate, requires_grad=False)
        self.inner_score = torch.zeros_like(self.inner_gate, requires_grad=False)

    def forward(self, states: torch.Tensor, mask: torch.Tensor, gated: bool) -> torch.Tensor:
        rows, length, _ = states.shape
        heads = len(self.q_w) // HEAD

        def split(weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            return F.linear(states, weight, bias).view(rows, length, heads, HEAD).transpose(1, 2)

        seen = F.scaled_dot_product_attention(
            split(self.q_w, self.q_b), split(self.k_w, self.k_b), split(self.v_w, self.v_b),
            attn_mask=mask,
        )  # fmt: skip
        if gated:
            seen = seen * self.head_gate[:, None, None].to(seen.dtype)
        seen = seen.transpose(1, 2).reshape(rows, length, heads * HEAD)
        states = states + F.linear(seen, self.o_w, self.o_b)
        states = F.layer_norm(states, (WIDTH,), self.ln1_w, self.ln1_b, 1e-12)
        inner = F.gelu(F.linear(states, self.fi_w, self.fi_b), approximate="tanh")
        if gated:
            inner = inner * self.inner_gate.to(inner.dtype)
        states = states + F.linear(inner, self.fo_w, self.fo_b)
        return F.layer_norm(states, (WIDTH,), self.ln2_w, self.ln2_b, 1e-12)

    def size(self) -> int:
        return sum(
            getattr(self, name).numel() for name in ("q_w", "k_w", "v_w", "o_w", "fi_w", "fo_w")
        )


class Encoder(nn.Module):
    """A BERT with mean pooling; ``rank`` factorises the table."""

    def __init__(self, weights: dict[str, torch.Tensor], layers: list[int], rank: int) -> None:
        super().__init__()
        table = weights["embeddings.word_embeddings.weight"]
        if rank:
            left, size, right = torch.linalg.svd(table.float(), full_matrices=False)
            self.table = nn.Parameter((left[:, :rank] * size[:rank].sqrt()).contiguous())
            self.mix = nn.Parameter((size[:rank].sqrt()[:, None] * right[:rank]).contiguous())
        else:
            self.table, self.mix = nn.Parameter(table.clone()), None
        places = weights["embeddings.position_embeddings.weight"][:WINDOW]
        self.places = nn.Parameter(places + weights["embeddings.token_type_embeddings.weight"][0])
        self.ln_w = nn.Parameter(weights["embeddings.LayerNorm.weight"].clone())
        self.ln_b = nn.Parameter(weights["embeddings.LayerNorm.bias"].clone())
        self.layers = nn.ModuleList(Layer(weights, f"encoder.layer.{layer}.") for layer in layers)
        self.gated = False

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The pooled unit vector and the token states."""
        states = F.embedding(ids, self.table)
        if self.mix is not None:
            states = states @ self.mix
        states = states + self.places[: ids.shape[1]]
        states = F.layer_norm(states, (WIDTH,), self.ln_w, self.ln_b, 1e-12)
        seen = mask[:, None, None, :]
        for layer in self.layers:
            states = layer(states, seen, self.gated)
        total = (states.float() * mask[..., None]).sum(1)
        return F.normalize(total, dim=1), states

    def size(self) -> int:
        """Weights of the matrices that every token passes."""
        return sum(layer.size() for layer in self.layers)


def read_teacher(path: Path) -> dict[str, torch.Tensor]:
    """The teacher's weights, as run.py packed them."""
    packed = np.load(path)
    weights = {}
    for name in packed.files:
        if not name.endswith("#scale"):
            tensor = packed[name].astype(np.float32)
            if name + "#scale" in packed.files:
                tensor *= packed[name + "#scale"].astype(np.float32)[:, None]
            weights[name] = torch.from_numpy(tensor).to(DEVICE)
    return weights


# -- pruning


def note_gates(student: Encoder) -> None:
    """Add this step's squared gradients of the gates to their scores."""
    for layer in student.layers:
        layer.head_score += layer.head_gate.grad.float() ** 2
        layer.inner_score += layer.inner_gate.grad.float() ** 2
        layer.head_gate.grad = layer.inner_gate.grad = None


def prune(student: Encoder, optimiser: torch.optim.Optimizer, budget: int) -> None:
    """Take out the heads and neurons that matter least for their cost, down to a budget."""
    units = []
    for place, layer in enumerate(student.layers):
        heads = layer.head_score / (4 * WIDTH * HEAD)
        inner = layer.inner_score / (2 * WIDTH)
        units += [(float(score), place, "head", at) for at, score in enumerate(heads.tolist())]
        units += [(float(score), place, "inner", at) for at, score in enumerate(inner.tolist())]
    left = {(place, "head"): len(one.head_score) for place, one in enumerate(student.layers)}
    left |= {(place, "inner"): len(one.inner_score) for place, one in enumerate(student.layers)}
    least = {"head": 2, "inner": 128}
    cost = {"head": 4 * WIDTH * HEAD, "inner": 2 * WIDTH}
    size, dropped = student.size(), set()
    for _, place, kind, at in sorted(units):
        if size <= budget:
            break
        if left[place, kind] > least[kind]:
            left[place, kind] -= 1
            size -= cost[kind]
            dropped.add((place, kind, at))
    for _, place, kind, at in sorted(units, reverse=True):  # whole blocks run faster
        if kind == "inner" and left[place, kind] % 16 and (place, kind, at) in dropped:
            dropped.remove((place, kind, at))
            left[place, kind] += 1
    for place, layer in enumerate(student.layers):
        heads = [at for at in range(len(layer.head_score)) if (place, "head", at) not in dropped]
        inner = [at for at in range(len(layer.inner_score)) if (place, "inner", at) not in dropped]
        rows = torch.tensor(
            [head * HEAD + at for head in heads for at in range(HEAD)], device=DEVICE
        )
        kept = torch.tensor(inner, device=DEVICE)
        for name, dim, index in (
            ("q_w", 0, rows), ("q_b", 0, rows), ("k_w", 0, rows), ("k_b", 0, rows),
            ("v_w", 0, rows), ("v_b", 0, rows), ("o_w", 1, rows),
            ("fi_w", 0, kept), ("fi_b", 0, kept), ("fo_w", 1, kept),
        ):  # fmt: skip
            cut(layer, name, dim, index, optimiser)
        layer.reset_gates()


def cut(
    module: nn.Module, name: str, dim: int, index: torch.Tensor, optimiser: torch.optim.Optimizer
) -> None:
    """Keep some rows or columns of a parameter and of what the optimiser knows of it."""
    old = getattr(module, name)
    new = nn.Parameter(old.data.index_select(dim, index).contiguous())
    setattr(module, name, new)
    state = optimiser.state.pop(old, None)
    if state:
        for key in ("exp_avg", "exp_avg_sq"):
            state[key] = state[key].index_select(dim, index).contiguous()
        optimiser.state[new] = state
    for group in optimiser.param_groups:
        group["params"] = [new if one is old else one for one in group["params"]]


# -- learning


def similarity_loss(
    mine: tuple[torch.Tensor, torch.Tensor], theirs: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """KL between the similarity matrices: both ways, and each side with itself."""
    total = mine[0].new_zeros(())
    for left, right in ((0, 1), (1, 0), (0, 0), (1, 1)):
        ours = mine[left] @ mine[right].T / TEMPERATURE
        goal = theirs[left] @ theirs[right].T / TEMPERATURE
        if left == right:
            itself = torch.eye(len(ours), device=DEVICE, dtype=torch.bool)
            ours, goal = ours.masked_fill(itself, -1e4), goal.masked_fill(itself, -1e4)
        total = total + F.kl_div(
            F.log_softmax(ours, 1), F.log_softmax(goal, 1), log_target=True, reduction="batchmean"
        )
    return total


def token_loss(mine: torch.Tensor, theirs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """1 - cosine of the token vectors, over all tokens."""
    cosines = F.cosine_similarity(mine.float(), theirs.float(), dim=2)
    return 1 - (cosines * mask).sum() / mask.sum()


def train(given: argparse.Namespace) -> None:
    torch.manual_seed(given.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    weights = read_teacher(given.folder / "teacher.npz")
    teacher = Encoder(weights, list(range(6)), 0).to(DEVICE).bfloat16().requires_grad_(False)
    student = Encoder(weights, given.layers, given.rank).to(DEVICE)
    if given.resume:
        load(student, given.resume)
    optimiser = torch.optim.AdamW(
        student.parameters(), lr=given.rate, weight_decay=0.01, betas=(0.9, 0.98)
    )
    sets = load_sets(given.folder / "eval")
    batches = iter(Batches(tokenise(given.folder), given.seed, given.foreign))
    full, budget = student.size(), int(given.budget * 1e6)
    steps_of_pruning = 0 if given.resume else 10
    start, step, pruned, shown, sums = time.time(), 0, 0, 0.0, np.zeros(4)
    while True:
        progress = (time.time() - start) / given.seconds if given.seconds else step / given.steps
        if progress >= 1:
            break
        rate = given.rate * min(1, (step + 1) / 100) * (0.5 + 0.5 * math.cos(math.pi * progress))
        for group in optimiser.param_groups:
            group["lr"] = rate + 1e-6
        student.gated = pruned < steps_of_pruning
        foreign, sides = next(batches)
        losses = one_step(student, teacher, foreign, sides, given)
        optimiser.zero_grad(set_to_none=True)
        losses[0].backward()
        if student.gated:
            note_gates(student)
            due = (progress - 0.04) / (given.prune_until - 0.04) * steps_of_pruning
            if due >= pruned + 1:
                pruned += 1
                share = 1 - (1 - pruned / steps_of_pruning) ** 2
                torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
                optimiser.step()
                prune(student, optimiser, int(full - share * (full - budget)))
                step += 1
                continue
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % 20 == 0:
            sums = 0.9 * sums + 0.1 * np.array([float(one.detach()) for one in losses])
        if progress - shown > 0.2:
            shown = progress
            print(given.name, step, f"{time.time() - start:.0f}s", np.round(sums / (1 - 0.9 ** (step // 20)), 3),
                  describe(student), brief(student, sets, given.folder), flush=True)  # fmt: skip
    save(student, given.out / f"{given.name}.npz")
    figures = {"name": given.name, "steps": step, "seconds": round(time.time() - start),
               "shape": describe(student), **measure(student, sets, given.folder)}  # fmt: skip
    (given.out / f"{given.name}.json").write_text(json.dumps(figures, indent=1))
    print("RESULT", json.dumps(figures), flush=True)


def one_step(
    student: Encoder, teacher: Encoder, foreign: bool, sides: list, given: argparse.Namespace
) -> list[torch.Tensor]:
    """The losses of one batch: all together, similarity, vectors, tokens."""
    mine, theirs, tokens = [], [], []
    with torch.autocast(DEVICE, torch.bfloat16):
        for place, (ids, mask) in enumerate(sides):
            vector, states = student(ids, mask)
            mine.append(vector)
            if foreign and place == 0:
                theirs.append(None)
                continue
            with torch.no_grad():
                goal, goal_states = teacher(ids, mask)
            theirs.append(goal)
            if given.tokens:
                tokens.append(token_loss(states, goal_states, mask))
    if foreign:
        theirs[0] = theirs[1]
    similar = similarity_loss((mine[0], mine[1]), (theirs[0], theirs[1]))
    if foreign:  # a foreign text has one original: being its own neighbour says nothing
        similar = similar * 0.5
    near = sum(1 - (one * goal).sum(1).mean() for one, goal in zip(mine, theirs, strict=True))
    token = sum(tokens) / max(1, len(tokens)) if tokens else similar.new_zeros(())
    return [
        similar + given.near * near + given.tokens * token,
        similar.detach(),
        near.detach(),
        token.detach() if tokens else token,
    ]


def describe(student: Encoder) -> str:
    shape = [f"{len(layer.q_w) // HEAD}h{len(layer.fi_w)}" for layer in student.layers]
    return f"{student.size() / 1e6:.2f}M {'+'.join(shape)}"


# -- files and figures


def save(student: Encoder, path: Path) -> None:
    """The weights by name: the table int8 by rows, everything else float16."""
    made: dict[str, np.ndarray] = {}
    for name, tensor in student.state_dict().items():
        array = tensor.float().cpu().numpy()
        if name == "table":
            scale = np.abs(array).max(1, keepdims=True) / 127 + 1e-12
            made["table"] = np.rint(array / scale).astype(np.int8)
            made["table_scale"] = scale[:, 0].astype(np.float32)
        else:
            made[name] = array.astype(np.float16)
    np.savez(path, **made)


def load(student: Encoder, path: Path) -> None:
    """Continue with saved weights, whatever their shapes."""
    packed = np.load(path)
    for name in packed.files:
        if name == "table_scale":
            continue
        array = packed[name].astype(np.float32)
        if name == "table":
            array *= packed["table_scale"][:, None]
        owner = student
        *folders, last = name.split(".")
        for folder in folders:
            owner = getattr(owner, folder) if not folder.isdigit() else owner[int(folder)]
        setattr(owner, last, nn.Parameter(torch.from_numpy(array).to(DEVICE)))
    for layer in student.layers:
        layer.reset_gates()


@torch.no_grad()
def embed(student: Encoder, texts: list[str], folder: Path) -> np.ndarray:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(WINDOW)
    rows = [one.ids for one in tokenizer.encode_batch_fast(texts)]
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    made = np.zeros((len(rows), WIDTH), np.float32)
    for at in range(0, len(order), 256):
        some = order[at : at + 256]
        width = max(len(rows[place]) for place in some)
        ids = torch.tensor(
            [rows[place] + [0] * (width - len(rows[place])) for place in some], device=DEVICE
        )
        mask = torch.tensor(
            [[1] * len(rows[p]) + [0] * (width - len(rows[p])) for p in some], device=DEVICE
        ).bool()
        made[some] = student(ids, mask)[0].cpu().numpy()
    return made


def measure(student: Encoder, sets: list, folder: Path) -> dict[str, list[float]]:
    gated, student.gated = student.gated, False
    figures = summarise(sets, lambda texts: embed(student, texts, folder))
    student.gated = gated
    return figures


def brief(student: Encoder, sets: list, folder: Path) -> str:
    figures = measure(student, [one for one in sets if one.name != "cosqa-dev"], folder)
    return json.dumps(
        {name: figures[name] for name in figures if "paraphrase" in name or "xquad" in name}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="encoder")
    parser.add_argument(
        "--layers", type=lambda text: [int(one) for one in text.split(",")], default=[0, 2, 5]
    )
    parser.add_argument("--rank", type=int, default=128)
    parser.add_argument("--budget", type=float, default=3.0, help="million weights in the layers")
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--tokens", type=float, default=1.0, help="weight of the token loss")
    parser.add_argument("--near", type=float, default=4.0, help="weight of 1 - cosine")
    parser.add_argument("--foreign", type=float, default=0.3, help="share of foreign batches")
    parser.add_argument("--prune-until", type=float, default=0.45)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--tokenise-only", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.tokenise_only:
        made = tokenise(given.folder)
        print({name: array.shape for name, array in made.items()})
    else:
        train(given)


if __name__ == "__main__":
    main()
