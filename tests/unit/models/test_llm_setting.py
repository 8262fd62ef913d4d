"""The setting that chooses a language model."""

from __future__ import annotations

import pytest

from bethink.config.settings import SETTINGS, load_settings, set_project_setting
from bethink.errors import BadSetting
from bethink.models import NONE
from bethink.models.llm import LLMS
from rows import each_row

SETTING = next(setting for setting in SETTINGS if setting.name == "llm")


def test_the_setting_allows_exactly_the_providers_there_are():
    """A new provider must be named in the settings too; the default is none."""
    assert (SETTING.default, SETTING.allowed, SETTING.providers) == (
        "none",
        (NONE,),
        tuple(LLMS),
    )


@pytest.mark.parametrize("provider", LLMS)
def test_a_user_chooses_one_and_a_project_cannot(tmp_path, provider):
    """A repository from elsewhere does not decide where memories are sent; it may choose none."""
    env = {"HOME": str(tmp_path), "BETHINK_CONFIG_DIR": str(tmp_path / "config")}
    project = tmp_path / "app"
    (project / ".bethink").mkdir(parents=True)
    chosen = f"{provider}:some-model:7b"

    assert load_settings(project, env | {"BETHINK_LLM": chosen}).llm == chosen
    with pytest.raises(BadSetting, match="a project cannot set llm"):
        set_project_setting("llm", chosen, project, env)
    set_project_setting("llm", "none", project, env)
    assert load_settings(project, env).origin("llm").kind == "project file"
    (project / ".bethink" / "config.toml").write_text(f'llm = "{chosen}"\n')
    with pytest.raises(BadSetting, match="a project cannot set llm"):
        load_settings(project, env)


@each_row("wrong", ["gpt-4", "openai:", "openai: ", "mistral:x", "ollama:a\nb"])
def test_anything_else_is_refused(tmp_path, wrong):
    """With what it may be."""
    env = {"HOME": str(tmp_path), "BETHINK_CONFIG_DIR": str(tmp_path), "BETHINK_LLM": wrong}

    with pytest.raises(BadSetting, match="a model of openai, anthropic, ollama as PROVIDER:MODEL"):
        load_settings(tmp_path, env)


def test_a_time_out_is_no_slip_of_the_pen(tmp_path):
    """Variables of other parts are not mistaken for a misspelt setting."""
    env = {"HOME": str(tmp_path), "BETHINK_CONFIG_DIR": str(tmp_path)}
    more = {"BETHINK_LLM_TIMEOUT_S": "5", "BETHINK_LLM_THINKING_TOKENS": "100"}

    assert load_settings(tmp_path, env | more).llm == "none"
