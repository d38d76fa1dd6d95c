/** Names for what the server answers; the types themselves are made from its OpenAPI document. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Job = Schemas["JobRecord"];
export type JobState = Job["status"];
export type JobPage = Schemas["JobPage"];
export type JobEvent = Schemas["EventRecord"];
export type Output = Schemas["OutputShape"];
export type Model = Schemas["ModelRecord"];
export type ChatModel = Schemas["ChatModel"];
export type DryRun = Schemas["DryRun"];
export type Cost = Schemas["Cost"];
export type FileRecord = Schemas["FileRecord"];
export type ErrorBody = Schemas["ErrorBody"];
export type ErrorDetail = Schemas["DetailShape"];
export type UsageStatement = Schemas["UsageStatement"];
export type UsageLine = Schemas["UsageLine"];
export type Budget = Schemas["BudgetShape"];
export type Webhook = Schemas["WebhookRecord"];
export type WebhookWithSecret = Schemas["WebhookWithSecret"];
export type Delivery = Schemas["DeliveryRecord"];
export type DeliveryMessage = Schemas["DeliveryMessage"];
export type Account = Schemas["AccountRecord"];
export type Key = Schemas["KeyRecord"];
export type ContentSummary = Schemas["ContentSummary"];
export type ContentRecord = Schemas["ContentRecord"];
export type ContentMessage = Schemas["ContentMessage"];
export type ContentPart = Schemas["ContentPart"];
export type Person = Schemas["PersonRecord"];
export type OwnPerson = Schemas["OwnPerson"];
export type Member = Schemas["MemberRecord"];
export type OwnSession = Schemas["OwnSession"];
export type SignInWays = Schemas["SignInWays"];
export type SessionRecord = Schemas["SessionShape"];
export type OwnKey = Schemas["OwnKey"];
export type IssuedKey = Schemas["IssuedKey"];
export type AuditEntry = Schemas["AuditRecord"];
export type LedgerEntry = Schemas["LedgerEntry"];
export type Vendor = Schemas["VendorRecord"];
export type VendorType = Schemas["VendorType"];
export type RunTimeSettings = Schemas["RunTimeSettings"];
export type SettingsEntry = Schemas["SettingsEntry"];
export type SettingsLimit = Schemas["SettingsLimit"];
export type SettingsChange = Schemas["SettingsChange"];
export type SettingsDifference = Schemas["SettingsDifference"];
export type SettingsVersion = Schemas["SettingsVersionRecord"];
export type SettingsVersionDetail = Schemas["SettingsVersionDetail"];
export type ConnectionTest = Schemas["ConnectionTestResult"];
export type PriceBook = Schemas["PriceBook"];
export type PlacePrice = Schemas["PlacePrice"];
export type PriceRow = Schemas["PriceRowShape"];
export type PricePreview = Schemas["PricePreview"];
export type PriceFinding = Schemas["PriceFinding"];
export type Share = Schemas["ShareRecord"];
export type ShareWithUrl = Schemas["ShareWithUrl"];
export type Pipeline = Schemas["PipelineRecord"];
export type PipelineStep = Schemas["StepRecord"];
export type PipelineDryRun = Schemas["PipelineDryRun"];
export type PipelineTemplate = Schemas["PipelineTemplateRecord"];
export type Lineage = Schemas["LineageRecord"];
export type LineageLink = Schemas["LineageLinkShape"];

/** A page of a list. */
export interface Page<T> {
  object: "list";
  data: T[];
  has_more: boolean;
  next_cursor: string | null;
}
