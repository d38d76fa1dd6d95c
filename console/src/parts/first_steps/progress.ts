/** Steps of this key that leave no trace on the server, and whether the panel was closed. Kept in the browser. */
import { useSyncExternalStore } from "react";
import { getSession, publicPart, subscribe } from "../../session";

export interface StepNotes {
  copied?: boolean;
  dismissed?: boolean;
}

const listeners = new Set<() => void>();
let place = placeOf();
let current = read();

subscribe(() => {
  place = placeOf();
  current = read();
  for (const listener of listeners) listener();
});

function placeOf(): string {
  const { account } = getSession();
  return `penstock.first_steps.${account ? publicPart(account) : ""}`;
}

function read(): StepNotes {
  try {
    return JSON.parse(localStorage.getItem(place) ?? "{}") as StepNotes;
  } catch {
    return {};
  }
}

export function noteStep(notes: StepNotes): void {
  current = { ...current, ...notes };
  try {
    localStorage.setItem(place, JSON.stringify(current));
  } catch {
    // Without storage it counts until the page is closed.
  }
  for (const listener of listeners) listener();
}

export function useStepNotes(): StepNotes {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
