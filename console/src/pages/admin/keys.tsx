/** Keys: all of them, and one. */
import { useRoute } from "wouter";
import { KeyList } from "./key_list";
import { KeyPage } from "./key_page";

export default function Keys() {
  const [isOne, params] = useRoute("/admin/keys/:id");
  return isOne ? <KeyPage key={params.id} id={params.id} /> : <KeyList />;
}
