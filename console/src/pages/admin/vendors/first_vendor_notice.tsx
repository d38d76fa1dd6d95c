/** On the administrator's first page: the way to the first vendor, until there is one. */
import { Alert, Button, Group } from "@mantine/core";
import { Link } from "wouter";
import { isHosted } from "../../../parts/model_order";
import { Icon } from "../../../shell/icons";
import { WORDS } from "../../../vocabulary";
import { useAllVendors } from "../questions";

export function FirstVendorNotice() {
  const vendors = useAllVendors();
  if (!vendors.data || vendors.data.some(({ type }) => isHosted(type))) return null;
  return (
    <Alert className="notice notice-gate" color="gate" mb="md" title={WORDS.addYourFirstVendor}>
      <Group justify="space-between" gap="sm">
        <span>So far the built-in engines and the simulator serve. Choose a service, paste its key and try it.</span>
        <Button component={Link} href="/admin/vendors" leftSection={<Icon name="vendors" size={16} />}>
          Choose a vendor
        </Button>
      </Group>
    </Alert>
  );
}
