import { ActionIcon, CopyButton, Tooltip } from "@mantine/core";
import { Icon } from "../shell/icons";

interface CodeBlockProps {
  code: string;
  label?: string;
  maxHeight?: number;
  onCopy?: () => void;
}

/** Text to copy. */
export function CodeBlock({ code, label = "Code", maxHeight, onCopy }: CodeBlockProps) {
  return (
    <div className="code">
      <section
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        aria-label={label}
        style={{ maxHeight, overflow: "auto" }}
      >
        <pre>{code}</pre>
      </section>
      <span className="copy">
        <Copy text={code} onCopy={onCopy} />
      </span>
    </div>
  );
}

interface CopyProps {
  text: string;
  label?: string;
  onCopy?: (() => void) | undefined;
}

/** A small button that copies. */
export function Copy({ text, label = "Copy", onCopy }: CopyProps) {
  return (
    <CopyButton value={text} timeout={1500}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : label}>
          <ActionIcon
            variant="default"
            size="sm"
            onClick={() => {
              copy();
              onCopy?.();
            }}
            aria-label={copied ? "Copied" : label}
          >
            <Icon name={copied ? "check" : "copy"} size={14} />
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}

/** An id that is read and copied. */
export function Identifier({ id }: { id: string }) {
  return (
    <span className="identifier">
      <span className="mono" title={id}>
        {id}
      </span>
      <Copy text={id} label="Copy id" />
    </span>
  );
}
