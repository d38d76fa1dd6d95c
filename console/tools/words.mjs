/** Check the words of the console: shared labels come from src/vocabulary.ts, words that readers stumble over are not used,
 * and no two pages have one shortcut. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

const VOCABULARY = "src/vocabulary.ts";
const LABEL_NAMES = new Set(["label", "title", "aria-label", "placeholder", "alt", "about", "name", "description"]);
const MAX_LABEL_WORDS = 4;

/** Labels that were replaced, and the words to use instead. */
const OLD_LABELS = {
  May: "Endpoints",
  Ends: "Expires",
  Made: "Created",
  Took: "Duration",
  Facts: "Details",
  Change: "Edit",
  "Make it": "Create",
  "Not now": "Cancel",
  "Not there": "Not found",
};

/** Words that no text of the console has, and the words to use instead. */
const OLD_WORDS = {
  told: "sent, shown or reported",
  anew: "again",
  whoever: "the person who",
  remark: "warning",
  remarks: "warnings",
  dearest: "highest price",
};

const files = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".d.ts"))
  .map((name) => join("src", name));
const texts = files.flatMap(readTexts);
const labels = texts.filter((text) => text.isLabel);
const problems = [...texts.flatMap(findOldWords), ...findRepeats(labels), ...findEqualShortcuts()];
for (const problem of problems) console.error(problem);
process.exit(problems.length > 0 ? 1 : 0);

/** Return every text of a file that a reader may see, with its place. */
function readTexts(file) {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const found = [];
  visit(source);
  return found;

  function visit(node) {
    const text = textOf(node);
    if (text) found.push({ file, line: lineOf(node), text, isLabel: isLabel(node) });
    if (!ts.isImportDeclaration(node)) ts.forEachChild(node, visit);
  }

  function lineOf(node) {
    return source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
  }
}

function textOf(node) {
  const isText =
    ts.isJsxText(node) || ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateTail(node);
  return isText ? node.text.trim().replace(/\s+/g, " ") : "";
}

/** Return whether a text names a thing or an action: an attribute, a column, a fact's name or the text of a button. */
function isLabel(node) {
  const { parent } = node;
  if (ts.isJsxText(node)) return parent.children.length === 1;
  if (ts.isJsxAttribute(parent) || ts.isPropertyAssignment(parent)) return LABEL_NAMES.has(parent.name.getText());
  return ts.isArrayLiteralExpression(parent) && parent.elements.length === 2 && parent.elements[0] === node;
}

function findOldWords({ file, line, text, isLabel }) {
  const words = text.toLowerCase().match(/[a-z]+/g) ?? [];
  const old = words.filter((word) => Object.hasOwn(OLD_WORDS, word)).map((word) => [word, OLD_WORDS[word]]);
  if (isLabel && Object.hasOwn(OLD_LABELS, text)) old.push([text, OLD_LABELS[text]]);
  return old.map(([word, instead]) => `${file}:${line}: "${word}" is an old word: write ${instead}`);
}

function findRepeats(labels) {
  const places = new Map();
  for (const { file, text } of labels.filter(isShared)) places.set(text, (places.get(text) ?? new Set()).add(file));
  const repeated = [...places].filter(([, where]) => where.size > 1);
  return repeated.map(([text, where]) => `"${text}" is a label in ${[...where].join(", ")}: write it in ${VOCABULARY}`);
}

function findEqualShortcuts() {
  const letters = [...readFileSync("src/pages.tsx", "utf8").matchAll(/shortcut: "(.)"/g)].map((found) => found[1]);
  const twice = letters.filter((letter, place) => letters.indexOf(letter) < place);
  return twice.map((letter) => `src/pages.tsx: two pages have the shortcut "${letter}"`);
}

function isShared({ file, text }) {
  return file !== VOCABULARY && /^[A-Z][a-z]/.test(text) && text.split(" ").length <= MAX_LABEL_WORDS;
}
