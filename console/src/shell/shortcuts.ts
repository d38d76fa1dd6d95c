/** Keyboard shortcuts: `g` and a letter leads to a page, `?` shows them all. */
import { useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { PAGES } from "../pages";
import { getSession } from "../session";

/** Further shortcuts that pages may rely on: `/` focuses what is marked with data-shortcut="/", `n` likewise. */
export const ELSEWHERE = [
  { keys: ["/"], what: "Go to the search or message field" },
  { keys: ["Ctrl", "Enter"], what: "Send or generate, in the playground" },
  { keys: ["?"], what: "Show this help" },
  { keys: ["Esc"], what: "Close the dialog" },
];

export function useShortcuts(onHelp: () => void): void {
  const [, navigate] = useLocation();
  const isGoing = useRef(0);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
      const going = Date.now() - isGoing.current < 1500;
      isGoing.current = 0;
      if (going) {
        const page = PAGES.find((each) => each.shortcut === event.key && getSession()[each.role]);
        if (page) {
          event.preventDefault();
          navigate(page.path);
        }
      } else if (event.key === "g") isGoing.current = Date.now();
      else if (event.key === "?") onHelp();
      else if (event.key === "/") {
        const field = document.querySelector<HTMLElement>('[data-shortcut="/"]');
        if (field) {
          event.preventDefault();
          field.focus();
        }
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [navigate, onHelp]);
}

function isWriting(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return Boolean(element?.closest("input, textarea, select, [contenteditable], [role=combobox], [role=dialog]"));
}
