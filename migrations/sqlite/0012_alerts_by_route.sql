-- A dependency's page marks its alerts on charts of a week: by route, not through all of a month.
CREATE INDEX alerts_by_route ON alerts (dependency, operation, since);
