package cli

import (
	"encoding/json"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/structure"
)

// readSchema reads a file that holds a JSON Schema, and checks that it can be used before anything is uploaded.
func readSchema(path string) (json.RawMessage, error) {
	raw, err := readJSON(path)
	if err != nil {
		return nil, err
	}
	if _, err := structure.Compile(raw); err != nil {
		return nil, apierr.New(apierr.InvalidArgument, "%s: %v", path, err).WithNext("see https://json-schema.org/learn for the format")
	}
	return raw, nil
}
