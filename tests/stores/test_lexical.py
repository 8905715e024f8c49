"""Keyword retrieval: what is found, in what order, and that both engines agree."""

import json
import math
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.analysis import Analyzer
from leadline.errors import ConfigError, ManifestMismatch, StoreDamaged
from leadline.stores import open_lexical_store, rank_bm25
from leadline.stores.base import ChunkRecord, LexicalStore
from leadline.stores.rank_bm25_model import Model

ENGINES = ("tantivy", "rank-bm25")
K1, B = 1.5, 0.75


def chunk(chunk_id: str, text: str) -> ChunkRecord:
    """A chunk of words."""
    return ChunkRecord(chunk_id, "d", text=text)


@pytest.fixture(params=ENGINES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LexicalStore]:
    """Each engine in turn, empty and ready."""
    async with open_lexical_store(request.param, path=tmp_path, analyzer=Analyzer("english")) as opened:
        await opened.ensure_ready()
        yield opened


def files(folder: Path) -> dict[str, bytes]:
    """Name → content of the files in a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


async def found(store: LexicalStore, question: str, k: int = 10) -> list[str]:
    """The ids found, best first, after a look at the scores."""
    hits = await store.lexical_search(question, k=k)
    assert all(hit.score > 0 for hit in hits)
    return [hit.chunk_id for hit in hits]


@pytest.mark.parametrize("others", [0, 1, 2, 3])
async def test_tiny_collections(store: LexicalStore, others: int) -> None:
    """With one, two or three chunks the one with the words is found, and only it."""
    await store.upsert(
        [chunk("vault", "The vault code is 7719."), *(chunk(f"o{n}", "rain fell") for n in range(others))]
    )
    assert await found(store, "vault code") == ["vault"]


async def test_word_in_every_chunk(store: LexicalStore) -> None:
    """A word that all chunks share still finds them, the one with more of it first."""
    await store.upsert([chunk("a", "rain fell again on roofs"), chunk("b", "rain rain rain rain fell")])
    assert await found(store, "rain") == ["b", "a"]


async def test_chunks_without_words(store: LexicalStore) -> None:
    """Chunks without a single term do no harm."""
    await store.upsert([chunk("a", "…"), chunk("b", "")])
    assert await found(store, "rain") == []
    assert await found(store, "…") == []
    await store.upsert([chunk("c", "rain")])
    assert await found(store, "rain") == ["c"]


@pytest.mark.parametrize("question", ['+rain -"fell', "rain AND fell OR (", "terms:rain", "rain~2^9 *", "rain\x00fell"])
async def test_question_is_never_a_query_language(store: LexicalStore, question: str) -> None:
    """Signs of a query syntax in a question are just signs."""
    await store.upsert([chunk("a", "rain fell")])
    assert await found(store, question) == ["a"]


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("ERR-4021", "error"),
        ("err-4021", "error"),
        ("4021", "error"),
        ("C++", "cpp"),
        ("c#", "csharp"),
        ("PPR-9087/B", "part"),
        ("9087", "part"),
        ("v2.10.3", "version"),
        ("user_id", "snake"),
        ("getuserid", "camel"),
        ("running", "run"),
        ("本社はいつ移転した？", "tokyo"),
        ("ﾄｳｷｮｳ", "kana"),
        ("２０１９", "tokyo"),
    ],
)
async def test_words_of_every_kind(store: LexicalStore, question: str, wanted: str) -> None:
    """Codes whole and in part, signs, versions, stems and scripts without spaces find their chunk first."""
    texts = {
        "error": "It stopped with ERR-4021 at once",
        "other": "It stopped with ERR-4022 at once",
        "cpp": "written in C++ only",
        "csharp": "written in C# only",
        "part": "order PPR-9087/B today",
        "version": "since v2.10.3 it works",
        "snake": "the column user_id is a key",
        "camel": "call getUserId first",
        "run": "they run far",
        "tokyo": "東京の本社は2019年に移転した",
        "kana": "トウキョウは大きい",
    }
    await store.upsert([chunk(name, text) for name, text in texts.items()])
    assert (await found(store, question))[0] == wanted


async def test_engines_agree(tmp_path: Path) -> None:
    """On a small collection both engines put the same chunk first and find the same ones."""
    texts = [
        "the pump needs oil every week",
        "oil prices rose again this week and the week before",
        "the pump stopped, then another pump stopped",
        "no relation to anything",
        "weekly reports about pumps and prices",
    ]
    records = [chunk(f"c{n}", text) for n, text in enumerate(texts)]
    answers: dict[str, list[list[str]]] = {}
    for engine in ENGINES:
        async with open_lexical_store(engine, path=tmp_path / engine, analyzer=Analyzer("english")) as store:
            await store.upsert(records)
            answers[engine] = [await found(store, q) for q in ("pump oil", "oil prices", "stopped pumps", "relation")]
    for one, other in zip(answers["tantivy"], answers["rank-bm25"], strict=True):
        assert one[0] == other[0]
        assert set(one) == set(other)


WORDS = st.lists(st.sampled_from("abcdefg"), max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=7), WORDS)
def test_scores_are_bm25_plus(corpus: list[list[str]], query: list[str]) -> None:
    """The order and scores of rank-bm25 are those of the published formula, computed another way."""
    model = Model([(f"c{n}", json.dumps(terms), "{}") for n, terms in enumerate(corpus)])
    average = sum(map(len, corpus)) / len(corpus)
    terms = [term for term in dict.fromkeys(query) if any(term in document for document in corpus)]
    expected = {}
    for n, document in enumerate(corpus):
        if not set(terms) & set(document):
            continue
        score = 0.0
        for term in terms:
            idf = math.log((len(corpus) + 1) / sum(term in other for other in corpus))
            count = Counter(document)[term]
            score += idf * (1 + count * (K1 + 1) / (count + K1 * (1 - B + B * len(document) / average)))
        expected[f"c{n}"] = score
    best = model.best(query, 100, None)
    assert {chunk_id: score for score, chunk_id in best} == pytest.approx(expected)
    assert [score for score, _ in best] == sorted((score for score, _ in best), reverse=True)


@pytest.mark.parametrize("engine", ENGINES)
async def test_construction_and_reading_do_no_writing(engine: str, tmp_path: Path) -> None:
    """A store that was only opened and searched leaves nothing on disk."""
    folder = tmp_path / "index"
    async with open_lexical_store(engine, path=folder, analyzer=Analyzer()) as store:
        assert await store.lexical_search("x", k=3) == []
        assert await store.all_ids() == set()
        assert await store.delete(["x"]) == 0
    assert not folder.exists()


@pytest.mark.parametrize("engine", ENGINES)
async def test_other_analyser_is_refused(engine: str, tmp_path: Path) -> None:
    """An index whose terms were made otherwise can't be searched by mistake."""
    async with open_lexical_store(engine, path=tmp_path, analyzer=Analyzer("english")) as store:
        await store.upsert([chunk("a", "running")])
    with pytest.raises(ManifestMismatch, match="another collection"):
        async with open_lexical_store(engine, path=tmp_path, analyzer=Analyzer("none")):
            pass


async def test_other_engine_is_refused(tmp_path: Path) -> None:
    """A folder of one engine isn't an empty index of the other."""
    async with open_lexical_store("tantivy", path=tmp_path, analyzer=Analyzer()) as store:
        await store.upsert([chunk("a", "rain")])
    with pytest.raises(ManifestMismatch, match="backend"):
        async with open_lexical_store("rank-bm25", path=tmp_path, analyzer=Analyzer()):
            pass


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("harm", ["cut", "junk", "gone"])
async def test_damaged_files_are_refused_and_kept(engine: str, harm: str, tmp_path: Path) -> None:
    """Whatever file is damaged, opening names it, and nothing is overwritten."""
    async with open_lexical_store(engine, path=tmp_path, analyzer=Analyzer()) as store:
        await store.upsert([chunk(f"c{n}", f"rain {n}") for n in range(300)])
        await store.delete(["c1"])
    for name, content in files(tmp_path).items():
        if not content or name == ".managed.json" or (harm == "gone" and name == "terms.sqlite"):
            continue  # nothing to harm, not needed, or its only file: without it the index is a new one
        path = tmp_path / name
        if harm == "gone":
            path.unlink()
        else:
            path.write_bytes(content[: len(content) // 2] if harm == "cut" else b"no index " * (len(content) // 9 + 1))
        before = files(tmp_path)
        with pytest.raises(StoreDamaged, match="verify --repair"):
            async with open_lexical_store(engine, path=tmp_path, analyzer=Analyzer()) as store:
                await store.lexical_search("rain", k=3)
        assert files(tmp_path) == before, name
        path.write_bytes(content)
    async with open_lexical_store(engine, path=tmp_path, analyzer=Analyzer()) as store:
        assert await store.count() == 299


@pytest.mark.parametrize("engine", ENGINES)
async def test_another_reader_sees_each_commit(engine: str, tmp_path: Path) -> None:
    """A second store over the same folder sees what the first one writes, without being opened again."""
    async with open_lexical_store(engine, path=tmp_path, analyzer=Analyzer()) as writer:
        await writer.upsert([chunk("a", "rain")])
        async with open_lexical_store(engine, path=tmp_path, analyzer=Analyzer()) as reader:
            assert await found(reader, "rain") == ["a"]
            await writer.upsert([chunk("b", "rain")])
            assert await found(reader, "rain") == ["a", "b"]
            await writer.delete(["a"])
            assert await found(reader, "rain") == ["b"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_write_takes_apart_only_what_it_brings(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much is stored: an upsert analyses its own texts, once each, and a deletion or a search none."""
    analysed: list[str] = []
    terms = Analyzer.terms
    monkeypatch.setattr(Analyzer, "terms", lambda self, text: (analysed.append(text), terms(self, text))[1])
    async with open_lexical_store(engine, path=tmp_path, analyzer=Analyzer()) as store:
        await store.upsert([chunk(f"c{n}", f"rain {n}") for n in range(200)])
        assert sorted(analysed) == sorted(f"rain {n}" for n in range(200))
        analysed.clear()
        await store.upsert([chunk("new", "snow fell")])
        await store.delete(["c7"])
        assert await found(store, "snow") == ["new"]
        assert set(analysed) <= {"snow fell", "snow"}


async def test_the_model_is_built_once_after_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first search after any number of writes; the next searches find it built."""
    built: list[int] = []
    monkeypatch.setattr(rank_bm25, "Model", lambda rows: (built.append(len(rows)), Model(rows))[1])
    async with open_lexical_store("rank-bm25", path=tmp_path, analyzer=Analyzer()) as store:
        for n in range(20):
            await store.upsert([chunk(f"c{n}", f"rain {n}")])
        await store.delete(["c7"])
        assert built == []
        assert len(await found(store, "rain", 100)) == 19
        assert await found(store, "3") == ["c3"]
        assert built == [19]


@pytest.mark.parametrize("engine", ENGINES)
async def test_no_text_on_disk(engine: str, tmp_path: Path) -> None:
    """The files hold terms, never the text of a chunk; of a cleared index not even terms."""
    async with open_lexical_store(engine, path=tmp_path, analyzer=Analyzer("none")) as store:
        await store.upsert([chunk("a", "Quokkas eat The Xylophone")])
        written = b"".join(files(tmp_path).values())
        assert b"Xylophone" not in written
        assert b"Quokkas eat" not in written
        await store.clear()
    assert b"xylophone" not in b"".join(files(tmp_path).values())


def test_unknown_backend_is_refused(tmp_path: Path) -> None:
    """The error lists what is allowed."""
    with pytest.raises(ConfigError, match="tantivy, rank-bm25"):
        open_lexical_store("lucene", path=tmp_path, analyzer=Analyzer())
