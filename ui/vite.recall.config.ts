import { defineConfig } from "vite";
import { JSX, withoutMarkup } from "./vite.shared.ts";

// The view of a recall for hosts of MCP Apps: a script and a style that the server puts into one page.
export default defineConfig({
  oxc: JSX,
  plugins: [withoutMarkup()],
  build: {
    outDir: "../src/bethink/server/mcp/view",
    emptyOutDir: false,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    sourcemap: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: "src/recall/main.tsx",
      output: { format: "iife", entryFileNames: "view.js", assetFileNames: "view.[ext]" },
    },
  },
});
