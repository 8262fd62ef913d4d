"""Each integration needs its extra, says so, and costs nothing where it is not used."""

from __future__ import annotations

import subprocess
import sys

from rows import each_row

EXTRAS = {
    "langgraph": ("langgraph", "langgraph"),
    "langchain": ("langchain_core", "langchain"),
    "llama_index": ("llama_index", "llama-index"),
    "openai_agents": ("agents", "openai-agents"),
    "anthropic": ("anthropic", "anthropic"),
}


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@each_row(("module", "needs"), EXTRAS.items())
def test_without_its_package_the_extra_is_named(module: str, needs: tuple[str, str]) -> None:
    """In one sentence with the command, whatever else is installed."""
    package, extra = needs

    told = run(
        f"import sys; sys.modules[{package!r}] = None\n"
        "from bethink.errors import MissingExtra\n"
        "try:\n"
        f"    import bethink.integrations.{module}\n"
        "except MissingExtra as error:\n"
        "    print(error.message, '|', error.remedy)\n"
    )

    assert f"is not installed | pip install '.[{extra}]'" in told


def test_another_missing_module_is_not_blamed_on_the_extra() -> None:
    """A broken installation shows itself as what it is."""
    told = run(
        "import sys; sys.modules['bethink.integrations.exact_json'] = None\n"
        "try:\n"
        "    import bethink.integrations.langgraph\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error.name)\n"
    )

    assert told.strip() == "bethink.integrations.exact_json"


def test_bethink_itself_loads_none_of_them() -> None:
    """Neither the packages nor the integrations, also not when a memory is opened."""
    packages = sorted({package for package, _ in EXTRAS.values()})

    told = run(
        "import sys, bethink\n"
        "bethink.Memory.open(':memory:').close()\n"
        f"print([name for name in [*{packages}, 'pydantic', 'bethink.integrations'] "
        "if name in sys.modules])\n"
    )

    assert told.strip() == "[]"
