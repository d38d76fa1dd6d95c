/** Markdown of an answer. It becomes elements, never HTML, and loads nothing. */
import { Anchor } from "@mantine/core";
import { memo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { CodeBlock } from "../../parts/code_block";

const PLUGINS = [remarkGfm];

const COMPONENTS: Components = {
  // URLs that are not http or https are already empty here.
  a: ({ href, children }) =>
    href ? (
      <Anchor href={href} target="_blank" rel="noopener noreferrer nofollow" underline="always">
        {children}
      </Anchor>
    ) : (
      <span>{children}</span>
    ),
  // A picture would be fetched from wherever the model says; its address is enough.
  img: ({ src, alt }) => (
    <span className="mono">
      [{alt || "picture"}] {typeof src === "string" ? src : ""}
    </span>
  ),
  pre: ({ node }) => {
    const code = node?.children[0];
    const text =
      code?.type === "element" ? code.children.map((child) => (child.type === "text" ? child.value : "")).join("") : "";
    return <CodeBlock code={text.replace(/\n$/, "")} />;
  },
};

export default memo(function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
        {text}
      </ReactMarkdown>
    </div>
  );
});
