/** Content log: the list, and one record as a conversation. */
import { useRoute } from "wouter";
import { ContentList } from "./content_list";
import { ContentPage } from "./content_page";

export default function Content() {
  const [isOne, params] = useRoute("/content/:id");
  return isOne ? <ContentPage key={params.id} id={params.id} /> : <ContentList />;
}
