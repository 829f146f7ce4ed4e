package tinymodel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/ollama/ollama/api"
)

// promptTemplate ends every prompt with a newline, after which the model begins an answer.
const promptTemplate = "{{ if .System }}{{ .System }}\n{{ end }}{{ .Prompt }}\n"

// One thread per generation: the model is too small to share out, and threads that wait for each other by spinning make
// it a hundred times slower where the processors are busy.
var parameters = map[string]any{"num_thread": 1}

// Create uploads the model to the server that client talks to and gives it a name there, such as "tiny" or "tiny:1b".
func Create(ctx context.Context, client *api.Client, name string, o Options) error {
	file := Bytes(o)
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(file))
	if err := client.CreateBlob(ctx, digest, bytes.NewReader(file)); err != nil {
		return fmt.Errorf("upload the model's file: %w", err)
	}
	request := &api.CreateRequest{
		Model: name, Files: map[string]string{"tiny.gguf": digest}, Template: promptTemplate, Parameters: parameters,
	}
	if err := client.Create(ctx, request, func(api.ProgressResponse) error { return nil }); err != nil {
		return fmt.Errorf("create model %s: %w", name, err)
	}
	return nil
}
