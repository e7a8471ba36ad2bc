// What Grafana's own types say of the JSON of a dashboard, for the kinds of panels that tools/dashboards writes.

import type * as schema from "@grafana/schema";
import type * as of_bargauge from "@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen";
import type * as of_stat from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type * as of_table from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type * as of_timeseries from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

// JSON has an enumeration as text, and leaves out what Grafana has a default for.
type Json<T> = T extends string ? `${T}` : T extends (infer E)[] ? Json<E>[] : T extends object ? {[K in keyof T]?: Json<T[K]>} : T;

// Grafana's schema leaves the fields of a query to the data source; these are those of Prometheus.
interface Query extends schema.DataQuery {
  expr: string;
  legendFormat?: string;
  instant?: boolean;
  range?: boolean;
  format?: "table" | "time_series" | "heatmap";
}
interface Mark extends schema.AnnotationQuery {
  expr: string;
  step?: string;
  titleFormat?: string;
  textFormat?: string;
}

type FieldConfig<Custom> = Omit<schema.FieldConfig, "custom"> & {custom?: Custom};
type Panel<Type extends string, Options, Custom> = Json<Omit<schema.Panel, "type" | "targets" | "options" | "fieldConfig">> & {
  type: Type;
  targets: Json<Query>[];
  options: Json<Options>;
  fieldConfig: {defaults: Json<FieldConfig<Custom>>; overrides: Json<schema.FieldConfigSource["overrides"]>};
};

export type row = Json<Omit<schema.RowPanel, "panels" | "type">> & {type: "row"; panels: []};
export type stat = Panel<"stat", of_stat.Options, Record<string, never>>;
export type bargauge = Panel<"bargauge", of_bargauge.Options, Record<string, never>>;
export type table = Panel<"table", of_table.Options, of_table.FieldConfig>;
export type timeseries = Panel<"timeseries", of_timeseries.Options, of_timeseries.FieldConfig>;
export type dashboard = Json<Omit<schema.Dashboard, "panels" | "annotations">> & {annotations: {list: Json<Mark>[]}};
