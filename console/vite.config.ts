import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const engine = process.env["HOLDFAST_URL"] ?? "http://127.0.0.1:4600";
// The engine takes a browser's requests from its own pages only; to it, those of `make console-dev` come from there.
const behind = { target: engine, changeOrigin: true, headers: { origin: engine } };

export default defineConfig({
  base: "./", // wherever the server is put under
  plugins: [react()],
  resolve: {
    alias: {
      "chat-session": here("../src/holdfast/server/static/chat-session.js"),
      // Its form for browsers writes `innerHTML`, which the page's policy refuses; the other is large.
      "decode-named-character-reference": here("src/design/entities.ts"),
    },
  },
  server: {
    proxy: {
      "/api": behind,
      "/healthz": behind,
      "/readyz": behind,
      "/login": behind,
      "/logout": behind,
      "/ws": { ...behind, ws: true },
    },
  },
  build: {
    outDir: here("../src/holdfast/server/static/console"),
    emptyOutDir: true,
    assetsInlineLimit: 0, // nothing inline: the page's policy would refuse it
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
