"""Our own encoder: its network, its tokenizer, its weights."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.cli import main
from bethink.core.blas import ONE_BLAS_THREAD, openblas_functions
from bethink.errors import ModelError
from bethink.models import open_embedder
from bethink.models.embed.contextual import EncoderNetwork, read_arrays
from bethink.models.embed.encoder import (
    ENCODER_DATA,
    ENCODER_VOCABULARY,
    ENCODER_WEIGHTS,
    MAX_WINDOWS,
    EncoderEmbedder,
)
from bethink.models.embed.served import measure_baseline
from bethink.models.embed.tokenizers import BertTokenizer
from library_tokenizer import LibraryTokenizer

VOCABULARY = [
    "[UNK]", "[CLS]", "[SEP]", "deploy", "##ment", "key", "cafe", "uber", "!", ".", "中", "s", "##s",
]  # fmt: skip
TEXTS = [
    "Which of the two servers was replaced after the storm?",
    "Anna prefers tabs over spaces.",
    "Der Schlüssel liegt im Büro, nicht im Keller.",
    "def parse(config):\n    return config or {}",
]
AWKWARD = [
    "Hello, World!", "naïve café Übergröße straße İstanbul", "日本語 text テスト 한국어",
    "a\u200bb \ufeff x\u00a0y", "[SEP] [CLS] x", "e\u0301 ﬁne ½ ² №", "emoji 😀👍 ok", "", "   ",
    "\x00\x01a", "don't-do_it v2.3.1", "x" * 150, "Ελληνικά Σίσυφος Русский й", "a\tb\nc\r\nd",
    "¿Qué?", "$100 £5 €3 ~`^|<>+=", "\u2028x\u2029y", "ŉ ǰ ΐ",
]  # fmt: skip


@pytest.fixture(scope="module")
def encoder() -> EncoderEmbedder:
    return EncoderEmbedder()


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    with np.load(ENCODER_DATA / ENCODER_WEIGHTS) as file:
        return {name: file[name].astype(np.float64) for name in file.files}


def forward(weights: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """The states of one row, head by head, in float64."""

    def norm(rows: np.ndarray, name: str) -> np.ndarray:
        rows = rows - rows.mean(1, keepdims=True)
        rows = rows / np.sqrt((rows**2).mean(1, keepdims=True) + 1e-12)
        return rows * weights[name + "_w"] + weights[name + "_b"]

    def linear(rows: np.ndarray, name: str) -> np.ndarray:
        return rows @ weights[name + "_w"].T + weights[name + "_b"]

    states = (weights["table"][ids] * weights["table_scale"][ids][:, None]) @ weights["mix"]
    states = norm(states + weights["places"][: len(ids)], "ln")
    layer = 0
    while f"layers.{layer}.q_w" in weights:
        name = f"layers.{layer}."
        query, key, value = (linear(states, name + part) for part in "qkv")
        heads = []
        for at in range(0, query.shape[1], 32):
            scores = np.exp(query[:, at : at + 32] @ key[:, at : at + 32].T / np.sqrt(32))
            heads.append(scores / scores.sum(1, keepdims=True) @ value[:, at : at + 32])
        states = norm(states + linear(np.concatenate(heads, axis=1), name + "o"), name + "ln1")
        inner = linear(states, name + "fi")
        inner = inner / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
        states = norm(states + linear(inner, name + "fo"), name + "ln2")
        layer += 1
    return states


def test_vectors_are_those_of_the_network(encoder, weights):
    """The fast pass gives what the plain formulas give, to a thousandth."""
    split = BertTokenizer((ENCODER_DATA / ENCODER_VOCABULARY).read_bytes())
    for text, made in zip(TEXTS, encoder.embed(TEXTS), strict=True):
        mean = forward(weights, [split.start_id, *split(text).ids, split.end_id]).mean(0)

        assert made.vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-3)


def test_a_text_gets_the_same_bits_in_any_company(encoder):
    """Alone, twice, and among texts of other lengths."""
    together = encoder.embed([*TEXTS, "short", *reversed(TEXTS)])

    for place, text in enumerate(TEXTS):
        alone = encoder.embed([text])[0]
        for other in (together[place], together[-1 - place]):
            assert alone.vector.tobytes() == other.vector.tobytes()
            assert alone.tokens == other.tokens
        assert alone.vector.tobytes() == encoder.embed_query(text).vector.tobytes()


def test_a_text_gets_the_same_bits_on_older_processors():
    """With kernels of OpenBLAS whose sums depend on the place of a row, too."""
    code = (
        "from bethink.models.embed.encoder import EncoderEmbedder as E; e = E();"
        "t = ['a key', 'the key of the lab is old', 'no', 'in the lab of Ann there is a key'];"
        "many = e.embed([*t, *t[:2], *t] * 3);"
        "assert all((e.embed([x])[0].vector == many[i].vector).all() for i, x in enumerate(t));"
        "assert all((many[i].vector == many[i + 10].vector).all() for i in range(20))"
    )
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Haswell"}

    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_an_empty_text_has_no_direction(encoder):
    """Zeros and no tokens, also for spaces."""
    for made in encoder.embed(["", " \n"]):
        assert not made.vector.any()
        assert made.tokens == b""
    assert encoder.count_tokens("") == 0
    assert encoder.count_tokens(" ") == 1


def test_a_long_text_is_read_in_windows(encoder):
    """Its end counts, up to the maximum number of windows."""
    long = "The harbour was closed because of fog. " * 60
    with_end, without = encoder.embed([long + "Penicillin gives Tom a rash.", long])
    asked = encoder.embed_query("Which medicine is Tom allergic to?").vector

    assert float(np.linalg.norm(with_end.vector)) == pytest.approx(1.0, abs=1e-5)
    assert with_end.vector.tobytes() != without.vector.tobytes()
    best = encoder.best_sentences(asked, [with_end.tokens, without.tokens])
    assert best[0] > best[1] + 0.1
    lost = [long * MAX_WINDOWS + ending for ending in ("One end.", "Another end.")]
    one, other = encoder.embed(lost)
    assert one.vector.tobytes() == other.vector.tobytes()


def test_tokens_are_read_in_context(encoder):
    """The same word has other vectors in other questions, and finds itself in its own text."""
    _, river = encoder.word_tokens(["bank"], "We sat on the bank of the river")
    _, money = encoder.word_tokens(["bank"], "The bank raised its interest rates")
    memories = [
        made.tokens
        for made in encoder.embed(["a picnic at the river bank", "the bank lends money"])
    ]

    assert float(river[0] @ money[0]) < 0.98
    assert encoder.best_matches(river, memories)[:, 0].argmax() == 0
    assert encoder.best_matches(money, memories)[:, 0].argmax() == 1


def test_meaning_decides_where_no_word_is_shared(encoder):
    """A paraphrase is nearer than an unrelated text."""
    asked = encoder.embed_query("who looks after the children?").vector
    near, far = encoder.embed(["Our babysitter is called Petra.", "The invoice is due on Monday."])

    assert float(asked @ near.vector) > float(asked @ far.vector) + 0.1


def test_the_baseline_is_that_of_the_weights(encoder):
    """The constant is what is measured."""
    assert encoder.unrelated == pytest.approx(measure_baseline(encoder), abs=0.01)


def test_the_name_belongs_to_the_weights():
    """New weights need a new name: vectors of both would silently mix in a store."""
    state = hashlib.sha256()
    with np.load(ENCODER_DATA / ENCODER_WEIGHTS) as file:
        for name in sorted(file.files):
            state.update(name.encode() + file[name].tobytes())

    assert (EncoderEmbedder.model, state.hexdigest()[:16]) == (
        "bethink-encoder-2",
        "edebc4dc33c0600f",
    )


def test_the_weights_are_small():
    """At most 22 MB in the wheel."""
    assert sum(path.stat().st_size for path in ENCODER_DATA.glob("encoder-*")) <= 22_000_000


def test_numpy_is_all_it_needs():
    """No tokenizer library, no ONNX Runtime, no other package with weights."""
    code = (
        "import sys\n"
        "from bethink.models import open_embedder\n"
        "open_embedder('encoder').embed(['ready?'])\n"
        "print(sorted({'tokenizers', 'onnxruntime', 'onnx'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "[]", done.stderr


def test_pieces_are_the_same_at_first_and_later():
    """The first are searched for in the file; later ones come from a dictionary."""
    lines = (ENCODER_DATA / ENCODER_VOCABULARY).read_bytes()
    pieces = lines.decode().split("\n")
    words = [*TEXTS, "zzqxv Überraschung 中文 [CLS] ##ing", *pieces[::400], *TEXTS]
    known = BertTokenizer(lines)
    known(" ".join(pieces[1000:2000]))

    for word in words:
        assert BertTokenizer(lines)(word) == known(word)
    assert [pieces[known.start_id], pieces[known.end_id]] == ["[CLS]", "[SEP]"]
    assert [pieces[one] for one in known("deploying keys").ids] == ["deploy", "##ing", "keys"]
    with pytest.raises(ModelError, match=r"no \[CLS\]"):
        BertTokenizer(b"a\nb")


def test_missing_or_damaged_weights_are_named(tmp_path):
    """A ModelError with the path, never a traceback from inside."""
    with pytest.raises(ModelError, match="cannot be read"):
        EncoderEmbedder(tmp_path).embed(["text"])
    vocabulary = (ENCODER_DATA / ENCODER_VOCABULARY).read_bytes()
    (tmp_path / ENCODER_VOCABULARY).write_bytes(vocabulary)
    for content in (b"", b"PK\x03\x04 not a file"):
        (tmp_path / ENCODER_WEIGHTS).write_bytes(content)
        with pytest.raises(ModelError, match=ENCODER_WEIGHTS):
            EncoderEmbedder(tmp_path).embed(["text"])
    np.savez(tmp_path / ENCODER_WEIGHTS, table=np.zeros((2, 2)))
    with pytest.raises(ModelError, match="damaged"):
        EncoderNetwork.load(tmp_path / ENCODER_WEIGHTS)


@pytest.mark.parametrize("wrong", ["missing", "other"])
def test_a_damaged_layer_is_named(tmp_path, wrong):
    """Layers are read with the first text, and their errors have the path, too."""
    arrays = dict(read_arrays(ENCODER_DATA / ENCODER_WEIGHTS))
    del arrays["layers.2.q_w"]
    if wrong == "other":
        arrays["layers.2.q_w"] = np.zeros((3, 5), np.float16)
    np.savez(tmp_path / ENCODER_WEIGHTS, **arrays)
    network = EncoderNetwork.load(tmp_path / ENCODER_WEIGHTS)

    with pytest.raises(ModelError, match=f"{ENCODER_WEIGHTS} is damaged"):
        network.encode([[101, 102]])


def test_the_first_text_gets_the_vectors_of_later_ones():
    """Its layers are read one at a time; the bits are the same, and so they are in parallel."""
    network = EncoderNetwork.load(ENCODER_DATA / ENCODER_WEIGHTS)
    row = [101, 2054, 3047, 102]
    with ThreadPoolExecutor(4) as pool:
        several = [made for (made,) in pool.map(lambda _: network.encode([row]), range(8))]

    for made in several:
        np.testing.assert_array_equal(made, several[0])
    np.testing.assert_array_equal(network.encode([row])[0], several[0])


def test_numpy_gets_its_threads_back(encoder):
    """The caller's own products are as parallel after an embedding as before."""
    read, write = openblas_functions()
    before = read()
    write(2)
    asked = read()
    try:
        encoder.embed(TEXTS)
        with ONE_BLAS_THREAD, ONE_BLAS_THREAD:
            assert read() == 1
        assert read() == asked
        assert ONE_BLAS_THREAD._entered == 0
    finally:
        write(before)
    assert read() == before


def test_a_command_within_a_program_claims_nothing_about_numpys_threads(monkeypatch):
    """They run already; an embedding that believed them gone would have all of them wait for it."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)

    assert main(["--version"]) == 0

    assert not {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"} & {*os.environ}


def test_a_command_within_a_program_sets_nothing_for_the_program(monkeypatch, tmp_path):
    """Its threads and its memory are its own; NumPy may come later, for the program's work."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BETHINK_WORKER", "off")
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path))
    kept = []
    monkeypatch.setattr("bethink.core.blas._keep_freed_memory", lambda: kept.append(1))
    with monkeypatch.context() as without_numpy:
        without_numpy.delitem(sys.modules, "numpy")
        assert main(["--version"]) == 0
    assert main(["--space", "mine", "remember", "The key is in the drawer."]) == 0

    assert main(["--space", "mine", "recall", "where is the key?"]) == 0

    assert not {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"} & {*os.environ}
    assert not kept


def test_it_is_opened_by_name():
    """The registry knows it."""
    assert isinstance(open_embedder("encoder"), EncoderEmbedder)


def test_words_are_split_as_the_vocabulary_spells_them():
    """Lower case, no accents, the longest piece first; spans are those of the text."""
    found = BertTokenizer("\n".join(VOCABULARY).encode())("Deployment KEYS, Café Über! 中文")

    assert [VOCABULARY[number] for number in found.ids] == [
        "deploy", "##ment", "key", "##s", "[UNK]", "cafe", "uber", "!", "中", "[UNK]",
    ]  # fmt: skip
    assert [found.text[start:end] for start, end in found.spans] == [
        "Deploy", "ment", "KEY", "S", ",", "Café", "Über", "!", "中", "文",
    ]  # fmt: skip


def test_pieces_are_those_of_the_library(tmp_path):
    """Ids and spans equal those of the tokenizers library, for awkward texts too."""
    library = pytest.importorskip("tokenizers")
    pieces = (ENCODER_DATA / ENCODER_VOCABULARY).read_text(encoding="utf-8").split("\n")
    made = library.Tokenizer(
        library.models.WordPiece(
            {piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"
        )
    )
    made.normalizer = library.normalizers.BertNormalizer()
    made.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    numbers = [(piece, pieces.index(piece)) for piece in ("[CLS]", "[SEP]")]
    made.post_processor = library.processors.TemplateProcessing("[CLS] $A [SEP]", None, numbers)
    made.save(str(tmp_path / "tokenizer.json"))
    theirs, ours = (
        LibraryTokenizer(tmp_path / "tokenizer.json"),
        BertTokenizer("\n".join(pieces).encode()),
    )

    for text in [*TEXTS, *AWKWARD]:
        assert ours(text).ids == theirs(text).ids, text
        assert ours(text).spans == [tuple(span) for span in theirs(text).spans], text
    assert (ours.start_id, ours.end_id) == (theirs.start_id, theirs.end_id)


def test_arrays_are_read_as_numpy_reads_them(tmp_path):
    """Of every shape and type that weights have, all of them or some."""
    path = tmp_path / "arrays.npz"
    arrays = {
        "halves": np.arange(6, dtype=np.float16).reshape(2, 3),
        "layers.0.b": np.float32([1.5]),
        "table": np.arange(-4, 4, dtype=np.int8).reshape(2, 2, 2),
        "none": np.zeros((0, 3), np.float32),
        "one": np.array(7, dtype=np.int64),
    }
    np.savez(path, **arrays)

    read = read_arrays(path)

    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
    assert read_arrays(path, ("table",)).keys() == {"table"}
    with pytest.raises(ModelError, match="damaged"):
        read_arrays(path, ("missing",))


@given(cut=st.integers(1, 900), at=st.integers(0, 899), byte=st.integers(0, 255))
def test_a_damaged_file_of_arrays_is_refused_or_has_the_arrays(cut, at, byte):
    """Cut off anywhere it is refused; with a wrong byte it is, or the shapes are as they were."""
    raw = io.BytesIO()
    np.savez(raw, a=np.arange(60, dtype=np.float16), b=np.zeros((3, 4), np.int8))
    whole = raw.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arrays.npz"
        path.write_bytes(whole[: -min(cut, len(whole))])
        with pytest.raises(ModelError, match="damaged"):
            read_arrays(path)
        at = min(at, len(whole) - 1)
        path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        try:
            sizes = [array.nbytes for array in read_arrays(path).values()]
        except ModelError:
            return
        assert sizes == [120, 12]


@pytest.mark.parametrize("array", [np.zeros((2, 3), order="F"), np.array([None])])
def test_arrays_in_another_format_are_refused(tmp_path, array):
    """By columns, of objects, or compressed: nothing of ours is."""
    np.savez(tmp_path / "other.npz", a=array)
    np.savez_compressed(tmp_path / "compressed.npz", a=np.zeros(9))
    for name in ("other.npz", "compressed.npz"):
        with pytest.raises(ModelError, match=f"{name} is damaged"):
            read_arrays(tmp_path / name)
