/** A sentence for people whose prompts and answers are logged. */
import { useOwnKey } from "../api/person";

export function useLoggedNote(): string | undefined {
  if (!useOwnKey().data?.content_log) return undefined;
  return "Your prompts and answers are logged. Owners and admins of the account can read them.";
}
