"""Files that follow from the models of the resources: `crds/`, what the chart holds, the reference of fields."""
