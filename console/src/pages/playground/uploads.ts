/** Files of this tab beside their tokens. After a reload their bytes are fetched from the server again. */
import { useEffect, useState } from "react";
import { ask, call } from "../../api/call";
import type { FileRecord } from "../../api/shapes";
import type { FileKind } from "../../parts/file_kinds";
import { fileFacts } from "../../parts/input_file";

export interface KnownFile {
  /** Address of the bytes in this tab. */
  preview: string;
  about: string;
  /** Name of the file. */
  name: string;
  kind: FileKind;
}

type Facts = Omit<KnownFile, "preview">;

const PLACE = "penstock.files";
const MOST = 30;
const shown = new Map<string, KnownFile>();

/** Files from this size on are sent in pieces. */
const LARGE = 32 << 20;

/** Upload a file and remember it. `onProgress` gets the bytes that have arrived of a large one. */
export async function uploadFile(file: File, onProgress: (sent: number) => void): Promise<FileRecord> {
  const record = (file.size > LARGE && (await uploadLarge(file, onProgress))) || (await uploadWhole(file));
  rememberFile(record.file_token, { preview: URL.createObjectURL(file), ...factsOf(record, file.name) });
  return record;
}

async function uploadLarge(file: File, onProgress: (sent: number) => void): Promise<FileRecord | null> {
  const { uploadInPieces } = await import("./resumable");
  const token = await uploadInPieces(file, onProgress);
  return token ? call<FileRecord>(`/api/v1/files/${encodeURIComponent(token)}`) : null;
}

function uploadWhole(file: File): Promise<FileRecord> {
  const body = new FormData();
  body.append("file", file);
  return call<FileRecord>("/api/v1/files", { body });
}

function factsOf(record: FileRecord, name: string): Facts {
  const { width, height, duration_seconds, bytes, kind } = record;
  const facts = { name: name || "pasted", width, height, bytes };
  return { about: fileFacts(duration_seconds ? { ...facts, duration_seconds } : facts), name, kind };
}

export function rememberFile(token: string, file: KnownFile): void {
  shown.set(token, file);
  const { preview: _, ...own } = file;
  const facts = Object.entries({ ...keptFacts(), [token]: own });
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(Object.fromEntries(facts.slice(-MOST))));
  } catch {
    // A full storage: the file is shown until the next reload.
  }
}

/** Name of the uploaded file, if this tab knows it. */
export function fileNameOf(token: string): string | undefined {
  return shown.get(token)?.name ?? keptFacts()[token]?.name;
}

/** A file by its token. Null until its bytes are here, and if they are no longer kept. */
export function useUpload(token: string | undefined): KnownFile | null {
  const [, setLoaded] = useState("");
  const known = token ? shown.get(token) : undefined;
  const isMissing = Boolean(token && !known);
  useEffect(() => {
    if (!isMissing || !token) return;
    const leaving = new AbortController();
    load(token, leaving.signal).then(setLoaded, () => undefined);
    return () => leaving.abort();
  }, [token, isMissing]);
  return known ?? null;
}

async function load(token: string, signal: AbortSignal): Promise<string> {
  const path = `/api/v1/files/${encodeURIComponent(token)}`;
  const facts = keptFacts()[token] ?? factsOf(await call<FileRecord>(path, { signal }), "");
  const answer = await ask(`${path}/content`, { signal });
  shown.set(token, { ...facts, preview: URL.createObjectURL(await answer.blob()) });
  return token;
}

function keptFacts(): Record<string, Facts> {
  try {
    return JSON.parse(sessionStorage.getItem(PLACE) ?? "{}") as Record<string, Facts>;
  } catch {
    return {};
  }
}
