/** Where an entry of the settings comes from, in a word. */
import type { SettingsEntry } from "../../../api/shapes";
import "../settings/settings.css";

export function Origin({ entry }: { entry: Pick<SettingsEntry, "origin" | "enabled" | "shadowed"> | undefined }) {
  return (
    <span className="origins">
      <span className="tag">
        {entry === undefined ? "built in" : entry.origin === "file" ? "from file" : "added here"}
      </span>
      {entry?.enabled === false && (
        <span className="tag" data-tone="warn">
          disabled
        </span>
      )}
      {entry?.shadowed && (
        <span className="tag" data-tone="warn">
          shadowed
        </span>
      )}
    </span>
  );
}
