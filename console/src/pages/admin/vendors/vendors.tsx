/** Vendors: all of them, a new one, and one. */
import { Route, Switch } from "wouter";
import { decoded } from "../../../parts/address_filters";
import { NewVendor } from "./new_vendor";
import { VendorChoice } from "./vendor_choice";
import { VendorList } from "./vendor_list";
import { VendorPage } from "./vendor_page";

export default function Vendors() {
  return (
    <Switch>
      <Route path="/admin/vendors/new/:type">{({ type }) => <NewVendor key={type} type={decoded(type)} />}</Route>
      <Route path="/admin/vendors/new">
        <VendorChoice />
      </Route>
      <Route path="/admin/vendors/:name">{({ name }) => <VendorPage key={name} name={decoded(name)} />}</Route>
      <Route>
        <VendorList />
      </Route>
    </Switch>
  );
}
