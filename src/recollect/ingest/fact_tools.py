"""Word lists of tools and what they are for: which of them stand side by side, which instead
of each other."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Tools and habits of which one has one at a time.
RIVALS = tuple(
    _words(row)
    for row in (
        "tabs spaces", "npm pnpm yarn bun", "poetry pipenv pdm uv", "jest vitest mocha jasmine",
        "webpack vite rollup parcel esbuild", "camelcase snake_case", "git mercurial subversion",
        "light-mode dark-mode", "single-quotes double-quotes", "rebasing merging squashing",
        "light-theme dark-theme",
    )
)  # fmt: skip
CODED = _words("s3 r2 ec2 k8s")  # names, though they look like codes
# Made with several things at once: a framework, a language, a bundler.
LAYERED = _words("built written implemented tested compiled rendered styled")
# What one does with one tool, and what sounds like it and is a product of many parts.
PURPOSES = _words("""
ci cd ci/cd tests test e2e builds deploys deployment deployments releases auth authentication
authorization login sso search email emails mail payments cache queues jobs chat calls docs
documentation control management analytics alerts errors logs metrics traces secrets sessions
storage backups uploads packages dependencies environments migrations flags diagrams reviews tickets
issues notes versions formatting state orchestration infrastructure
""")
PRODUCTS = _words("billing pricing onboarding landing banking booking ticketing mapping thing")
# Of what something is made one thing at a time.
MATERIALS = tuple(
    _words(row)
    for row in (
        """python go golang rust java kotlin scala ruby php perl elixir erlang c c++ c# swift
        haskell typescript javascript clojure zig dart objective-c coffeescript node""",
        "react vue svelte angular ember solid preact backbone jquery",
        "django flask fastapi rails spring express nestjs laravel phoenix",
        "sass less tailwind css-modules styled-components",
        "pytest unittest nose cypress playwright selenium puppeteer",
        "sphinx mkdocs docusaurus jekyll hugo", "make cmake bazel gradle maven ant meson",
    )
)  # fmt: skip
