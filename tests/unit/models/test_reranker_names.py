"""Rerankers by name, in the table, in the settings, and for whom they may be set."""

from __future__ import annotations

import pytest

from bethink.config.settings import SETTINGS, load_settings, refuse_in_project, set_user_setting
from bethink.errors import BadSetting
from bethink.models import NONE
from bethink.models.rerank import RERANKERS, OverlapReranker, open_reranker
from bethink.models.rerank.cross_encoder import CrossEncoder
from bethink.models.rerank.http import HttpReranker


def test_each_name_opens_its_kind():
    """By itself, with a folder, as an address, and with both schemes."""
    assert isinstance(open_reranker("overlap"), OverlapReranker)
    assert isinstance(open_reranker("cross-encoder"), CrossEncoder)
    assert isinstance(open_reranker("cross-encoder:~/models/mine"), CrossEncoder)
    for address in ("http://host/rerank", "https://host/rerank", "http:https://host/rerank"):
        assert isinstance(open_reranker(address), HttpReranker)


def test_none_means_none():
    """By name, and by saying nothing."""
    assert open_reranker(NONE) is None
    assert open_reranker(None) is None


def test_a_function_is_a_reranker_already():
    """It is given back as it is."""

    def read(query, texts):
        return [0.5] * len(texts)

    assert open_reranker(read) is read


def test_the_same_name_gives_the_same_one():
    """A model is loaded once a process, and a server's silence is remembered."""
    assert open_reranker("cross-encoder:a") is open_reranker("cross-encoder:a")
    assert open_reranker("cross-encoder:a") is not open_reranker("cross-encoder:b")


def test_an_unknown_name_is_refused_with_the_allowed_ones():
    """The error lists every name there is, and what each provider must be told."""
    for name in ("bm25", "cross-encoder:", "overlap:x", "http:", "ftp://host"):
        with pytest.raises(BadSetting, match=f"'{name}'") as caught:
            open_reranker(name)

    assert caught.value.remedy == (
        "allowed: overlap, cross-encoder, none, cross-encoder:NAME_OR_FOLDER, "
        "http://HOST/PATH#MODEL, https://HOST/PATH#MODEL"
    )


def test_the_setting_allows_exactly_the_names_there_are():
    """A new reranker must be named in the settings too."""
    setting = next(setting for setting in SETTINGS if setting.name == "reranker")

    # The language model that reranks is the space's own: opened with it, not by name alone.
    bare = [name for name, one in RERANKERS.items() if one.bare]
    assert setting.allowed == (*bare, "llm", NONE)
    assert setting.providers == tuple(name for name, one in RERANKERS.items() if one.argument_hint)
    assert setting.plugins == RERANKERS.group
    assert setting.default == NONE


@pytest.mark.parametrize("name", ["http://elsewhere.invalid/", "https://h/r", "cross-encoder:x"])
def test_a_project_cannot_say_who_reads(name):
    """Neither to which server memories go nor which folder's model is run; a plain name is
    harmless."""
    with pytest.raises(BadSetting, match="a project cannot set reranker"):
        refuse_in_project("reranker", name, "bethink.toml")

    refuse_in_project("reranker", "overlap", "bethink.toml")


def test_it_is_set_like_any_other(tmp_path):
    """In the user's file, by the environment; the variables of the key are let be."""
    env = {"BETHINK_CONFIG_DIR": str(tmp_path), "HOME": str(tmp_path)}
    set_user_setting("reranker", "http://host:8080/rerank#model", env)
    assert load_settings(tmp_path, env).reranker == "http://host:8080/rerank#model"

    env |= {"BETHINK_RERANK_API_KEY": "k", "BETHINK_RERANK_TIMEOUT_S": "1"}
    env["BETHINK_RERANKER"] = "overlap"
    assert load_settings(tmp_path, env).reranker == "overlap"

    with pytest.raises(BadSetting, match="reranker"):
        set_user_setting("reranker", "bm25", env)
