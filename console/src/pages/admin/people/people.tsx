/** All people of the server, and one. */
import { useRoute } from "wouter";
import { PersonList } from "./person_list";
import { PersonPage } from "./person_page";

export default function AllPeople() {
  const [isOne, params] = useRoute("/admin/people/:id");
  return isOne ? <PersonPage key={params.id} id={params.id} /> : <PersonList />;
}
