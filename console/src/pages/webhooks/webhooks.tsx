/** Webhooks: the list, and one with its deliveries. */
import { useRoute } from "wouter";
import { WebhookList } from "./webhook_list";
import { WebhookPage } from "./webhook_page";

export default function Webhooks() {
  const [isOne, params] = useRoute("/webhooks/:id");
  return isOne ? <WebhookPage key={params.id} id={params.id} /> : <WebhookList />;
}
