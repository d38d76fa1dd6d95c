/** Webhooks: the account's addresses, and one of them with what it was told. */
import { useRoute } from "wouter";
import { WebhookList } from "./webhook_list";
import { WebhookPage } from "./webhook_page";

export default function Webhooks() {
  const [isOne, params] = useRoute("/webhooks/:id");
  return isOne ? <WebhookPage key={params.id} id={params.id} /> : <WebhookList />;
}
