package configs

import _ "embed"

// Example is a configuration file that holds every key with its default and what it means.
//
//go:embed example.yaml
var Example string
