"""Fit what a captured line seems worth, and measure it on projects that were left out.

    python training/fit_worth.py --out src/bethink/ingest/worth.json
    python training/fit_worth.py --check FILE

The lines are in ``data/capture``, one file for each project and voice: + or -, the class of the
source, the text. Every project is judged by weights that were fitted on the others; then all
are fitted together. What users say helps to fit and is not judged, so the figures are of the other
lines. ``--check`` judges another file with the weights of the package.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from bethink.ingest.content_checks import content_flags
from bethink.ingest.inbox import FEATURES, form_of, judge
from bethink.models.embed.encoder import EncoderEmbedder

DATA = Path(__file__).parent / "data" / "capture"
CACHE = Path("/tmp/worth-vectors.npz")
STEPS = 60


def read_lines(path: Path) -> list[tuple[bool, str, str]]:
    rows = [line.split("\t", 2) for line in path.read_text("utf-8").splitlines() if line]
    return [(mark == "+", source, text) for mark, source, text in rows]


def vectors_of(texts: list[str], cache: Path | None = None) -> np.ndarray:
    if cache and cache.exists():
        kept = np.load(cache, allow_pickle=True)
        if list(kept["texts"]) == texts:
            return kept["vectors"]
    made = np.stack([one.vector for one in EncoderEmbedder().embed(texts)])
    if cache:
        np.savez(cache, texts=np.array(texts, dtype=object), vectors=made)
    return made


def forms_of(lines: list[tuple[bool, str, str]], vectors: np.ndarray) -> np.ndarray:
    """The form of each line; what is most like it is an earlier line of the same project."""
    rows = []
    for place, (*_, text) in enumerate(lines):
        nearest = float((vectors[:place] @ vectors[place]).max()) if place else 0.0
        rows.append(form_of(text, content_flags(text), nearest))
    return np.array(rows)


def fit(features: np.ndarray, labels: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """Logistic regression by Newton's method; the last column is the constant."""
    weights = np.zeros(features.shape[1])
    balance = np.where(labels > 0, 0.5 / labels.mean(), 0.5 / (1 - labels.mean()))
    for _ in range(STEPS):
        share = 1 / (1 + np.exp(-features @ weights))
        slope = features.T @ (balance * (share - labels)) + penalty * weights
        curve = (features * (balance * share * (1 - share))[:, None]).T @ features
        step = np.linalg.solve(curve + np.diag(penalty + 1e-6), slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def columns(
    forms: np.ndarray, vectors: np.ndarray, which: str, spread: np.ndarray, by_user: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The matrix of some features, with a constant, and the penalty of each.

    Whether the user said it is a feature of the fit only: what a user says is not judged.
    """
    parts, penalties = [], []
    if which != "meaning":
        parts.append(forms / spread)
        penalties += [1.0] * forms.shape[1]
    if which != "form":
        parts.append(vectors * SCALE)
        penalties += [1.0] * vectors.shape[1]
    parts += [by_user[:, None], np.ones((len(forms), 1))]
    return np.hstack(parts), np.array([*penalties, 1.0, 0.0])


SCALE = 3.0  # of the vector, whose values are small: how freely its weights may move


def told(name: str, shares: np.ndarray, labels: np.ndarray) -> str:
    order = np.argsort(-shares)
    hits = np.cumsum(labels[order]) / labels.sum()
    junk = np.cumsum(1 - labels[order]) / (1 - labels).sum()
    at90, at95 = junk[np.searchsorted(hits, 0.9)], junk[np.searchsorted(hits, 0.95)]
    ranked = (hits[:-1] + hits[1:]) / 2 @ np.diff(junk)
    return f"{name:8} area {ranked:.3f}  junk at .90 worthy {at90:.3f}  at .95 {at95:.3f}"


def at_threshold(shares: np.ndarray, labels: np.ndarray, threshold: float) -> str:
    kept = shares >= threshold
    worthy, junk = kept[labels > 0].mean(), kept[labels == 0].mean()
    return f"from {threshold:.2f}: {worthy:.3f} of the worthy, {junk:.3f} of the junk"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--check", type=Path)
    given = parser.parse_args()
    if given.check:
        check(given.check)
        return
    files = sorted(DATA.glob("*.txt"))
    groups = [read_lines(path) for path in files]
    texts = [text for lines in groups for _, _, text in lines]
    vectors = vectors_of(texts, CACHE)
    project = np.array([n for n, lines in enumerate(groups) for _ in lines])
    labels = np.array([float(mark) for lines in groups for mark, _, _ in lines])
    forms = np.vstack([forms_of(lines, vectors[project == n]) for n, lines in enumerate(groups)])
    spread = forms.std(axis=0) + 1e-6
    by_user = np.array([float(s == "user") for lines in groups for _, s, _ in lines])
    print(f"{len(texts)} lines of {len(files)} projects, {labels.mean():.2f} worthy")
    judged, all_labels = by_user == 0, labels
    shares = {}
    for which in ("form", "meaning", "both"):
        features, penalty = columns(forms, vectors, which, spread, by_user)
        made = np.zeros(len(labels))
        for left_out in range(len(files)):
            rest = project != left_out
            weights = fit(features[rest], labels[rest], penalty)
            made[~rest] = 1 / (1 + np.exp(-features[~rest] @ weights))
        shares[which] = made[judged]
        print(told(which, made[judged], labels[judged]))
    labels, project = labels[judged], project[judged]
    texts = [text for text, is_judged in zip(texts, judged, strict=True) if is_judged]
    for threshold in (0.3, 0.35, 0.4, 0.40, 0.5, 0.55, 0.6):
        print(
            *(
                f"{which}: {at_threshold(shares[which], labels, threshold)};"
                for which in ("form", "both")
            )
        )
    for n, path in enumerate(files):
        of = project == n
        print(f"  {path.stem:18} {at_threshold(shares['both'][of], labels[of], 0.40)}")
    wrong = sorted(zip(shares["both"] - labels, texts, strict=True))
    print("missed:", *(f"\n   {1 + d:.2f} {t}" for d, t in wrong[:14]))
    print("kept junk:", *(f"\n   {d:.2f} {t}" for d, t in wrong[-14:]))
    if given.out:
        given.out.write_text(
            json.dumps(package(forms, vectors, all_labels, spread, by_user)) + "\n"
        )


def package(
    forms: np.ndarray,
    vectors: np.ndarray,
    labels: np.ndarray,
    spread: np.ndarray,
    by_user: np.ndarray,
) -> dict:
    """The weights as the package reads them: of the form alone, and with the vector."""
    means, form = forms.mean(axis=0), len(FEATURES)
    made: dict = {"model": EncoderEmbedder.model}
    for name, which in (("form", "form"), ("with_meaning", "both")):
        features, penalty = columns(forms, vectors, which, spread, by_user)
        weights = fit(features, labels, penalty)
        own = weights[:form] / spread
        head = {"weights": own.round(4).tolist(), "means": means.round(4).tolist()}
        bias = weights[-1] + own @ means
        if which == "both":
            vector = weights[form:-2] * SCALE
            scale = float(np.abs(vector).max() / 127)
            made |= {
                "scale": round(scale, 6),
                "vector": (vector / scale).round().astype(int).tolist(),
            }
            meaning = float((vectors @ vector).mean())
            head["meaning_mean"], bias = round(meaning, 4), bias + meaning
        made[name] = head | {"bias": round(float(bias), 4)}
    return made


def check(path: Path) -> None:
    """Judge another file by the weights of the package, as the write pipeline does."""
    lines = [line for line in read_lines(path) if line[1] != "user"]
    texts, labels = [text for *_, text in lines], np.array([float(mark) for mark, *_ in lines])
    made = EncoderEmbedder().embed(texts)
    forms = forms_of(lines, np.stack([one.vector for one in made]))
    both = [judge(f, e, EncoderEmbedder.model) for f, e in zip(forms.tolist(), made, strict=True)]
    alone = [judge(form) for form in forms.tolist()]
    for name, found in (("form", alone), ("both", both)):
        shares = np.array([one.share for one in found])
        print(told(name, shares, labels))
        for threshold in (0.3, 0.4, 0.40, 0.5):
            print("  ", at_threshold(shares, labels, threshold))
    for one, text, label in sorted(zip(both, texts, labels, strict=True)):
        if (one.share >= 0.40) != bool(label):
            print(f"  {'+' if label else '-'} {one.share:.2f} {text[:80]} ({one.reason})")


if __name__ == "__main__":
    main()
