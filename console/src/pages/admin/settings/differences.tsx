/** Differences between two versions of the settings, one line for each option. */
import { Text } from "@mantine/core";
import type { SettingsDifference } from "../../../api/shapes";
import "./settings.css";

const SIGNS = { added: "+", removed: "−", changed: "~" } as const;

export function Differences({ changes }: { changes: SettingsDifference[] }) {
  if (changes.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        Nothing changes.
      </Text>
    );
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <ul className="differences" aria-label="Differences" tabIndex={0}>
      {changes.map((each) => (
        <li key={each.path} data-change={each.change}>
          <span className="sign" aria-hidden="true">
            {SIGNS[each.change]}
          </span>
          <div>
            <span className="mono path">{each.path}</span>
            <span className="visually-hidden"> {each.change}</span>
            {"before" in each && <del>{show(each.before)}</del>}
            {"after" in each && <ins>{show(each.after)}</ins>}
          </div>
        </li>
      ))}
    </ul>
  );
}

/** A value as a person reads it: texts without quotes, the rest as JSON. */
export function show(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
