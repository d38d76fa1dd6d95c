/** Accounts: all of them, and one. */
import { useRoute } from "wouter";
import { AccountList } from "./account_list";
import { AccountPage } from "./account_page";

export default function Accounts() {
  const [isOne, params] = useRoute("/admin/accounts/:id");
  return isOne ? <AccountPage key={params.id} id={params.id} /> : <AccountList />;
}
