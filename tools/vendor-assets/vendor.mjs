// Copies the browser bundles of the report, and the licences of everything inside them, to the Python package.
// `npm ci && node vendor.mjs`; the result is committed, so building latlab needs no network for it.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");
const assets = join(here, "..", "..", "python", "latlab", "report", "assets");

// Used by command-line programs of these packages only, never part of a bundle.
const COMMAND_LINE_ONLY = new Set(["commander", "iconv-lite", "rw", "yargs"]);

const manifest = (name) => JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
const withoutSourceMap = (text) => text.replace(/\n?\/\/# sourceMappingURL=.*\s*$/u, "\n");
const bundle = (...path) => withoutSourceMap(readFileSync(join(modules, ...path), "utf8"));

/** Every package whose code is inside a bundle, sorted by name. */
function bundled() {
  const found = new Set();
  const waiting = ["vega", "vega-lite", "vega-interpreter"];
  while (waiting.length > 0) {
    const name = waiting.pop();
    if (found.has(name) || COMMAND_LINE_ONLY.has(name) || name.startsWith("@types/")) continue;
    found.add(name);
    waiting.push(...Object.keys(manifest(name).dependencies ?? {}));
  }
  return [...found].sort();
}

/** The licence text that a package ships; packages of the vega repository that ship none share vega's. */
function licence(name) {
  const folder = join(modules, name);
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.(md|txt))?$/iu.test(entry));
  if (file !== undefined) return readFileSync(join(folder, file), "utf8").trim();
  const repository = JSON.stringify(manifest(name).repository ?? "");
  if (repository.includes("vega/vega")) return readFileSync(join(modules, "vega", "LICENSE"), "utf8").trim();
  throw new Error(`${name} ships no licence text: add it by hand before vendoring`);
}

/** The interpreter is published as a module only: the same code, taking what it imports from the `vega` bundle. */
function interpreter() {
  const source = bundle("vega-interpreter", "build", "vega-interpreter.js");
  const imports = /^import \{([^}]*)\} from 'vega-util';\n/u;
  const exports = /\nexport \{ expression as expressionInterpreter \};\n/u;
  if (!imports.test(source) || !exports.test(source)) throw new Error("vega-interpreter changed its shape");
  const body = source
    .replace(imports, (_, names) => `const {${names}} = vega;\n`)
    .replace(exports, "\nreturn { expressionInterpreter: expression };\n");
  return `var vegaInterpreter = (function (vega) {\n"use strict";\n${body}})(vega);\n`;
}

if (!existsSync(modules)) throw new Error("run `npm ci` in tools/vendor-assets first");
mkdirSync(assets, { recursive: true });
writeFileSync(join(assets, "vega.min.js"), bundle("vega", "build", "vega.min.js"));
writeFileSync(join(assets, "vega-lite.min.js"), bundle("vega-lite", "build", "vega-lite.min.js"));
writeFileSync(join(assets, "vega-interpreter.js"), interpreter());

const packages = bundled();
const line = "=".repeat(100);
const texts = packages.map((name) => {
  const { version, license } = manifest(name);
  return `${line}\n${name} ${version} (${license})\n${line}\n${licence(name)}\n`;
});
const opening = "Licences of the code inside vega.min.js, vega-lite.min.js and vega-interpreter.js.\n\n";
writeFileSync(join(assets, "LICENSES.txt"), opening + texts.join("\n"));
for (const name of ["vega", "vega-lite"]) {
  writeFileSync(join(assets, `LICENSE-${name}`), `${licence(name)}\n`);
}
console.log(`vendored ${packages.length} packages to ${assets}`);
