/** A model's example request, ready to paste. */
import type { Model } from "../../api/shapes";

export function modelCode(origin: string, model: Model): Record<string, string> {
  const isChat = model.kind === "chat";
  const path = isChat ? "/llm/chat/completions" : "/model/v1/generation";
  const body = JSON.stringify(model.example, null, 2);
  const quoted = body.replaceAll("'", "'\\''");
  return {
    curl: `curl ${origin}${path} \\
  -H "Authorization: Bearer $PENSTOCK_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${quoted}'`,
    JavaScript: `const answer = await fetch("${origin}${path}", {
  method: "POST",
  headers: {
    Authorization: \`Bearer \${process.env.PENSTOCK_API_KEY}\`,
    "Content-Type": "application/json",
  },
  body: JSON.stringify(${body.replaceAll("\n", "\n  ")}),
});
console.log(await answer.json());`,
    JSON: body,
  };
}
