"""Every failure is a sentence, a remedy where there is one, and an exit code."""

from __future__ import annotations

import json

import click
import pytest

from bethink import errors
from bethink.cli.app import App
from bethink.cli.errors import classify_error, interrupted_failure, report_failure
from rows import each_row


@each_row(
    ("error", "kind", "code"),
    [
        (errors.Refused("no"), "refused", 2),
        (errors.TooLarge("text", limit=1, actual=2), "too_large", 2),
        (errors.BadText("no"), "bad_text", 2),
        (errors.LooksPasted("no"), "looks_pasted", 2),
        (errors.Conflict("no"), "conflict", 2),
        (errors.NotFound("no"), "not_found", 1),
        (errors.BadProfile("no"), "bad_profile", 2),
        (errors.BadSetting("no"), "bad_setting", 2),
        (errors.MissingExtra("x", extra="y"), "missing_extra", 2),
        (errors.ModelError("no"), "model_error", 3),
        (errors.StoreError("no"), "store_error", 3),
        (errors.StoreBusy("no"), "store_busy", 3),
        (errors.StoreDamaged("no"), "store_damaged", 3),
        (errors.SchemaTooNew("no"), "schema_too_new", 3),
        (errors.Forbidden("no", scope="admin"), "forbidden", 2),
        (click.UsageError("no"), "bad_use", 2),
        (click.BadParameter("no"), "bad_use", 2),
        (click.ClickException("no"), "bad_use", 2),
        (FileNotFoundError(2, "No such file", "x"), "system", 2),
        (OSError(28, "No space left on device"), "disk_full", 3),
        (OSError(5, "Input/output error"), "system", 3),
        (MemoryError(), "memory", 3),
        (KeyError("x"), "bug", 70),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_exit_code_for_everything(error: Exception, kind: str, code: int) -> None:
    """1 only for what is not there, 3 only for trouble, and a bug looks like neither."""
    failure = classify_error(error)

    assert (failure.kind, failure.code) == (kind, code)
    assert failure.message


def test_every_error_of_ours_has_its_place() -> None:
    """None falls through to being called a bug."""
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    ours = [kind for kind in kinds if issubclass(kind, Exception)]
    asking_more = (
        *(errors.TooLarge, errors.MissingExtra, errors.Forbidden),
        *(errors.UntrustedSpace, errors.SomeRefused),
    )
    plain = [kind for kind in ours if kind not in asking_more]

    assert all(not classify_error(kind("no")).is_bug for kind in plain)
    untrusted = errors.UntrustedSpace("no", remedy="bethink trust", project="p", space="s")
    assert not classify_error(untrusted).is_bug
    assert not classify_error(errors.SomeRefused([errors.Refused("no")])).is_bug


def test_a_sentence_and_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr, nothing on stdout."""
    code = report_failure(
        classify_error(errors.NotFound("there is\nno such\x1b[31m thing", remedy="look")), App()
    )

    said = capsys.readouterr()
    assert code == 1
    assert said.out == ""
    assert said.err == "error: there is no such thing\ntry:   look\n"


def test_json_errors_are_objects(capsys: pytest.CaptureFixture[str]) -> None:
    """On stdout, and strict JSON even where the message holds what UTF-8 cannot write."""
    report_failure(classify_error(click.UsageError("bad \udcff")), App(json=True))

    told = json.loads(capsys.readouterr().out)
    assert told == {"error": {"kind": "bad_use", "message": "bad \\udcff", "remedy": ""}}


def test_an_unknown_option_says_how_to_write_a_dash() -> None:
    """Texts may begin with one."""
    assert "--" in classify_error(click.NoSuchOption("-5")).remedy


def test_an_interruption_is_not_an_answer() -> None:
    """Shells expect 130."""
    assert interrupted_failure().code == 130
