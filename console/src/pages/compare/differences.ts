/** Which params of the compared jobs differ. */
import type { Job } from "../../api/shapes";
import { FILE_WORDS } from "../../parts/file_kinds";
import { fileKindOf, inputFiles, type PlacedFile, paramsToShow } from "../../parts/input_file";

export interface ComparedParam {
  name: string;
  differs: boolean;
}

const FIRST = ["prompt", "text", "file"];

/** Params of any of the jobs that are set: first the prompt and the picture, then those that most jobs have. */
export function compareParams(jobs: Job[]): ComparedParam[] {
  const names = new Set(jobs.flatMap((job) => Object.keys(job.input).filter((name) => paramText(job, name) !== null)));
  const count = (name: string) =>
    FIRST.includes(name) ? Number.POSITIVE_INFINITY : jobs.filter((job) => paramText(job, name) !== null).length;
  const ordered = [...names].toSorted((a, b) => (count(a) === count(b) ? 0 : count(b) - count(a)));
  return ordered.map((name) => ({ name, differs: new Set(jobs.map((job) => paramText(job, name))).size > 1 }));
}

/** Return a param as text to compare and show, or null if it is not set. Pictures are equal if their bytes are. */
export function paramText(job: Job, name: string): string | null {
  const value = paramsToShow(job)[name];
  if (value === null || value === undefined || value === "") return null;
  if (typeof value === "string") return value;
  const sums = filesAt(job, name).map(({ file }) => ("sha256" in file ? String(file.sha256) : JSON.stringify(file)));
  return sums.length ? sums.join(" ") : JSON.stringify(value);
}

/** Return a param as people read it. */
export function textOf(job: Job, name: string): string | null {
  const files = filesAt(job, name);
  if (files.length === 0) return paramText(job, name);
  return files.map(({ file }) => file.name ?? file.url ?? `a ${FILE_WORDS[fileKindOf(file)]}`).join(", ");
}

function filesAt(job: Job, name: string): PlacedFile[] {
  return inputFiles(job).filter(({ path }) => path.replace(/\.\d+$/, "") === name);
}

export interface Word {
  text: string;
  /** Absent from at least one of the other texts. */
  isOwn: boolean;
}

/** Split a text into words and the gaps between them, and mark the words that not all texts have. */
export function ownWords(text: string, others: string[]): Word[] {
  const known = others.map((other) => new Set(plainWords(other)));
  return text.split(/(\s+)/).map((part) => {
    const word = plain(part);
    return { text: part, isOwn: word !== "" && known.some((words) => !words.has(word)) };
  });
}

function plainWords(text: string): string[] {
  return text.split(/\s+/).map(plain);
}

function plain(word: string): string {
  return word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}
