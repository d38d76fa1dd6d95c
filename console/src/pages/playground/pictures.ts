/** Pictures of this tab beside their tokens. After a reload their bytes are fetched from the server again. */
import { useEffect, useState } from "react";
import { ask } from "../../api/call";

export interface KnownPicture {
  /** Address of the bytes in this tab. */
  preview: string;
  about: string;
  /** Name of the file. */
  name: string;
}

type Facts = Omit<KnownPicture, "preview">;

const PLACE = "penstock.pictures";
const MOST = 30;
const shown = new Map<string, KnownPicture>();

export function rememberPicture(token: string, picture: KnownPicture): void {
  shown.set(token, picture);
  const facts = Object.entries({ ...keptFacts(), [token]: { about: picture.about, name: picture.name } });
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(Object.fromEntries(facts.slice(-MOST))));
  } catch {
    // A full storage: the picture is shown until the next reload.
  }
}

/** Name of the uploaded file, if this tab knows it. */
export function fileNameOf(token: string): string | undefined {
  return shown.get(token)?.name ?? keptFacts()[token]?.name;
}

/** A picture by its token. Null until its bytes are here, and if they are no longer kept. */
export function usePicture(token: string | undefined): KnownPicture | null {
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
  const answer = await ask(`/api/v1/files/${encodeURIComponent(token)}/content`, { signal });
  const facts = keptFacts()[token] ?? { about: "The picture you uploaded", name: "" };
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
