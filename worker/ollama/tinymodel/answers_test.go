package tinymodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/ollama/ollama/api"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The shapes of what loopkeeper asks for: a plan, a verdict, and something of a user's.
var schemas = map[string]string{
	"plan": `{"type":"object","additionalProperties":false,"required":["steps"],"properties":{"steps":{"type":"array",
		"minItems":1,"maxItems":8,"items":{"type":"object","additionalProperties":false,
		"required":["id","goal","depends_on","writes","external"],"properties":{
		"id":{"type":"string","pattern":"^s[0-9]{1,2}$"},
		"goal":{"type":"string","minLength":10,"maxLength":320},
		"depends_on":{"type":"array","maxItems":8,"items":{"type":"string","pattern":"^s[0-9]{1,2}$"}},
		"writes":{"type":"array","maxItems":3,"items":{"type":"string","pattern":"^[a-z0-9_./-]{1,48}$"}},
		"external":{"type":"boolean"}}}}}}`,
	"verdict": `{"type":"object","additionalProperties":false,"required":["reasons","quotes","verdict"],"properties":{
		"reasons":{"type":"array","minItems":1,"maxItems":5,"items":{"type":"string","minLength":5,"maxLength":200}},
		"quotes":{"type":"array","minItems":1,"maxItems":5,"items":{"type":"object","additionalProperties":false,
		"required":["line","words"],"properties":{"line":{"type":"integer","minimum":1,"maximum":212},
		"words":{"type":"string","minLength":3,"maxLength":80}}}},
		"verdict":{"enum":["passed","sent_back","needs_human"]}}}`,
	"summary": `{"type":"object","required":["title","points"],"properties":{"title":{"type":"string"},
		"points":{"type":"array","minItems":3,"maxItems":3,"items":{"type":"string"}},"score":{"type":"integer"}}}`,
}

// With the server's default temperature of 0.8, answers end by themselves well within 256 tokens and are what was asked.
func TestRealOllamaAnswersAreShortAndValid(t *testing.T) {
	server := Start(t, ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	server.Create(t, "tiny", Options{})
	for name, text := range schemas {
		t.Run(name, func(t *testing.T) {
			const tries = 40
			schema := compile(t, text)
			ended, valid, tokens, distinct := 0, 0, 0, map[string]bool{}
			for i := range tries {
				answer := generate(t, server.Client, "tiny", fmt.Sprintf("Do part %d of the work.", i), text, i)
				tokens += answer.EvalCount
				distinct[answer.Response] = true
				if answer.DoneReason != "stop" {
					continue
				}
				ended++
				if err := check(schema, answer.Response); err != nil {
					t.Errorf("%v in %s", err, answer.Response)
				} else {
					valid++
				}
			}
			t.Logf("%d of %d ended, %d valid, %d different, %d tokens each", ended, tries, valid, len(distinct), tokens/tries)
			if ended < tries*85/100 {
				t.Errorf("only %d of %d answers ended within 256 tokens", ended, tries)
			}
			if len(distinct) < tries/4 {
				t.Errorf("only %d different answers to %d prompts", len(distinct), tries)
			}
		})
	}
}

func TestRealOllamaFreeTextEnds(t *testing.T) {
	server := Start(t, ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	server.Create(t, "tiny", Options{})
	for i := range 20 {
		answer := generate(t, server.Client, "tiny", fmt.Sprintf("Say something about %d.", i), "", i)
		if answer.DoneReason != "stop" || len(answer.Response) < 10 {
			t.Errorf("answer %d ended by %q: %q", i, answer.DoneReason, answer.Response)
		}
	}
}

// generate asks for one whole answer of at most 256 tokens.
func generate(t *testing.T, client *api.Client, model, prompt, schema string, seed int) api.GenerateResponse {
	t.Helper()
	no := false
	request := &api.GenerateRequest{
		Model: model, Prompt: prompt, Stream: &no, Truncate: &no, Shift: &no,
		Options: map[string]any{"seed": seed, "num_predict": 256, "num_ctx": 2048, "repeat_penalty": 1.0},
	}
	if schema != "" {
		request.Format = json.RawMessage(schema)
	}
	var answer api.GenerateResponse
	err := client.Generate(t.Context(), request, func(r api.GenerateResponse) error { answer = r; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func compile(t *testing.T, text string) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func check(schema *jsonschema.Schema, answer string) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(answer)))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}
