/** Layout of the form. */
import { ActionIcon, Button, Collapse, Group, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type {
  ArrayFieldItemTemplateProps,
  ArrayFieldTemplateProps,
  FieldTemplateProps,
  ObjectFieldTemplateProps,
} from "@rjsf/utils";
import { Prose } from "../../parts/prose";
import { Icon } from "../../shell/icons";

export function Field({ hidden, children }: FieldTemplateProps) {
  return hidden ? null : children;
}

/** The params themselves: what must be given first, the rest in two columns. Objects inside can be opened. */
export function Fields(props: ObjectFieldTemplateProps) {
  const isRoot = props.fieldPathId.path.length === 0;
  return isRoot ? <Grid {...props} /> : <Nested {...props} />;
}

function Grid({ properties, schema }: ObjectFieldTemplateProps) {
  const isWide = (name: string) => {
    const field = schema.properties?.[name];
    if (typeof field !== "object") return false;
    const isLong =
      field.type === "string" && !field.enum && (schema.required?.includes(name) || (field.maxLength ?? 0) >= 300);
    return isLong || field.type === "object" || field.type === "array" || Boolean(field.anyOf);
  };
  return (
    <div className="fields">
      {properties.map((each) => (
        <div key={each.name} className={isWide(each.name) ? "field wide" : "field"}>
          {each.content}
        </div>
      ))}
    </div>
  );
}

function Nested(props: ObjectFieldTemplateProps) {
  const [opened, { toggle }] = useDisclosure(false);
  return (
    <div className="nested">
      <UnstyledButton className="nested-head" onClick={toggle} aria-expanded={opened}>
        <span aria-hidden="true">{opened ? "▾" : "▸"}</span> {props.title}
      </UnstyledButton>
      {props.schema.description && (
        <div className="field-about">
          <Prose text={props.schema.description} />
        </div>
      )}
      <Collapse expanded={opened}>{opened && <Grid {...props} />}</Collapse>
    </div>
  );
}

export function Items({ title, items, canAdd, onAddClick, disabled }: ArrayFieldTemplateProps) {
  return (
    <div className="nested">
      <div className="field-label">{title}</div>
      {items}
      {canAdd && (
        <Button size="compact-sm" variant="default" onClick={onAddClick} disabled={disabled}>
          Add
        </Button>
      )}
    </div>
  );
}

export function Item({ children, buttonsProps, index }: ArrayFieldItemTemplateProps) {
  return (
    <Group wrap="nowrap" align="flex-start" mb={6}>
      <div style={{ flex: 1 }}>{children}</div>
      {buttonsProps.hasRemove && (
        <ActionIcon
          variant="subtle"
          color="red"
          onClick={buttonsProps.onRemoveItem}
          aria-label={`Remove item ${index + 1}`}
        >
          <Icon name="trash" size={16} />
        </ActionIcon>
      )}
    </Group>
  );
}
