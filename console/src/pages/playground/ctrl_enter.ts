import { useEffect, useRef } from "react";

/** Submit by Ctrl+Enter, wherever the focus is: after a click on an example it is on a button that is gone. */
export function useCtrlEnter(submit: () => void): void {
  const latest = useRef(submit);
  latest.current = submit;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const isElsewhere = (event.target as HTMLElement | null)?.closest("[role=dialog]");
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat && !isElsewhere) latest.current();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
}
