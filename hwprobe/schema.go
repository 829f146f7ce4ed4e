package hwprobe

import _ "embed"

// Schema is the JSON schema (draft 2020-12) of a Report of ReportVersion.
//
//go:embed report.schema.json
var Schema string
