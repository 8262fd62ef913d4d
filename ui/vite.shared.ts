import type { Plugin } from "vite";

const FORBIDDEN = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(/;

// No way to make HTML from a string is built in: Preact's own sets text instead.
export function withoutMarkup(): Plugin {
  return {
    name: "without-markup",
    transform(code, id) {
      return /[\\/]preact[\\/]dist[\\/]preact\./.test(id) ? { code: code.replaceAll(".innerHTML", ".textContent"), map: null } : null;
    },
    generateBundle(_, bundle) {
      for (const [name, file] of Object.entries(bundle)) {
        const found = file.type === "chunk" && FORBIDDEN.exec(file.code);
        if (found) this.error(`${name} holds ${found[0]}`);
      }
    },
  };
}

export const JSX = { jsx: { runtime: "automatic", importSource: "preact" } } as const;
