import { defineConfig } from "vite";
import { JSX, withoutMarkup } from "./vite.shared.ts";

// The build must be the same bytes everywhere: no paths, no dates, fixed names.
export default defineConfig({
  base: "/ui/",
  oxc: JSX,
  plugins: [withoutMarkup()],
  server: { proxy: { "/v1": "http://127.0.0.1:8765" } },
  build: {
    outDir: "../src/bethink/server/ui",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: false,
    license: { fileName: "licenses.md" }, // of what is bundled: it goes into the wheel
  },
});
