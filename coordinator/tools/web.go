package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/tools/policy"
)

// Web is the tool http.request. It calls the hosts that are named and no other, and looks at no proxy of the environment.
type Web struct {
	Hosts    map[string]WebHost // by "host", for the port of the scheme, or "host:port"
	Bodies   Bodies
	Timeout  time.Duration // of a call with its redirects; 0: 30s
	MaxBytes int64         // of an answer's body; 0: 16 MiB
}

// ResponseEvidence is a request without its secrets, and what came back: Path is the URL, Text the method and status.
const ResponseEvidence EvidenceKind = "response"

// Describe implements Tool.
func (Web) Describe() Description {
	return Description{
		Name: "http.request", Summary: "Calls a host that the settings name.", Effect: External, Verify: "ask the host that was called",
		Input: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["url"],"properties":{
			"url":{"type":"string","maxLength":8192},"method":{"enum":["GET","HEAD","POST","PUT","PATCH","DELETE"]},
			"headers":{"type":"object","maxProperties":32,"additionalProperties":{"type":"string","maxLength":4096}},
			"body":{"description":"a text, or a value that is sent as JSON"}}}`),
		Output: json.RawMessage(`{"type":"object","required":["status","headers","body","truncated"],"properties":{"status":{"type":"integer"},
			"headers":{"type":"object"},"body":{"type":"object"},"truncated":{"type":"boolean"}}}`),
	}
}

type webInput struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

func (in webInput) reads() bool { return in.Method == http.MethodGet || in.Method == http.MethodHead }

func webCall(call Call) (webInput, error) {
	in, err := decode[webInput](call)
	if in.Method == "" {
		in.Method = http.MethodGet
	}
	return in, err
}

// Nature implements Natured.
func (Web) Nature(call Call) policy.Nature {
	if in, err := webCall(call); err == nil && in.reads() {
		return policy.Nature{Authority: policy.Inform, Affects: policy.External, Reversible: true, Verifiable: true}
	}
	return policy.Nature{Authority: policy.Act, Affects: policy.External}
}

// check refuses what the settings do not name.
func (w Web) check(u *url.URL, method string) error {
	h, named := w.host(u)
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil:
		return failed(NotAllowed, "http.request: want an http or https URL without a name or password, got %s", u.Redacted())
	case !named:
		return failed(NotAllowed, "http.request: the host %s is not named", u.Host).next("name it under `http` in the settings of the coordinator")
	case !slices.Contains(h.Methods, method):
		return failed(NotAllowed, "http.request: %s is not allowed for %s, %s is", method, u.Host, strings.Join(h.Methods, ", ")).
			next("add it to the methods of the host under `http` in the settings of the coordinator")
	}
	return nil
}

// ours are headers that a script does not set: they say where a message begins and ends, whom it is for, or who sends it.
var ours = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Expect", "Proxy-Authorization", "Authorization", "Cookie", "Idempotency-Key"}

// Before implements Tool.
func (w Web) Before(_ context.Context, call Call) ([]Evidence, error) {
	in, err := webCall(call)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(in.URL)
	if err != nil {
		return nil, failed(InvalidInput, "http.request: input.url: it is no URL").next("repair the `tool` call in the script")
	}
	for name, value := range in.Headers {
		if slices.Contains(ours, http.CanonicalHeaderKey(name)) || strings.ContainsAny(name+value, "\r\n\x00") {
			return nil, failed(InvalidInput, "http.request: input.headers: %q is not a script's to set", name).next("name what a host needs to be told under `secrets` of the host in the settings")
		}
	}
	if in.reads() && in.Body != nil {
		return nil, failed(InvalidInput, "http.request: input.body: %s has none", in.Method)
	}
	return nil, w.check(u, in.Method)
}

// Do implements Tool.
func (w Web) Do(ctx context.Context, call Call, _ []Evidence) (Outcome, error) {
	in, err := webCall(call)
	if err != nil {
		return Outcome{}, err
	}
	request, err := w.request(ctx, call, in)
	if err != nil {
		return Outcome{}, err
	}
	timeout, most := w.Timeout, w.MaxBytes
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	if most == 0 {
		most = 16 << 20
	}
	answer, err := w.client(w.check, in.reads(), timeout).Do(request)
	if err != nil {
		return Outcome{}, w.lost(ctx, in, err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	seen := &io.LimitedReader{R: answer.Body, N: most}
	ref, err := w.Bodies.Put(ctx, "response", seen)
	if err != nil {
		return Outcome{}, w.lost(ctx, in, err)
	}
	more, _ := answer.Body.Read(make([]byte, 1))
	headers := map[string]string{}
	for _, name := range []string{"Content-Type", "Etag", "Last-Modified", "Location", "Retry-After"} {
		if v := answer.Header.Get(name); v != "" {
			headers[strings.ToLower(name)] = v
		}
	}
	return Outcome{
		Value: encode(map[string]any{"status": answer.StatusCode, "headers": headers, "body": ref, "truncated": more > 0}),
		After: []Evidence{{Kind: ResponseEvidence, Path: answer.Request.URL.Redacted(), Exists: true, SHA256: ref.SHA256, Bytes: ref.Bytes, Body: &ref,
			Text: in.Method + " " + answer.Status}},
	}, nil
}

func (w Web) request(ctx context.Context, call Call, in webInput) (*http.Request, error) {
	body, kind := string(in.Body), "application/json"
	if json.Unmarshal(in.Body, &body) == nil {
		kind = "text/plain; charset=utf-8"
	}
	request, err := http.NewRequestWithContext(ctx, in.Method, in.URL, strings.NewReader(body))
	if err != nil {
		return nil, failed(InvalidInput, "http.request: %v", err)
	}
	request.Header.Set("User-Agent", "loopkeeper")
	if !in.reads() {
		key, _, _ := strings.Cut(call.Key, "/work/") // the same for every attempt of the step
		request.Header.Set("Idempotency-Key", key)
		request.Header.Set("Content-Type", kind)
	}
	for name, value := range in.Headers {
		request.Header.Set(name, value)
	}
	h, _ := w.host(request.URL)
	for name, file := range h.Secrets {
		secret, err := os.ReadFile(file)
		if err != nil {
			return nil, failed(IOError, "http.request: the secret for the header %s of %s cannot be read", name, request.URL.Host).
				next(fmt.Sprintf("check the file %s", file)).again()
		}
		request.Header.Set(name, strings.TrimSpace(string(secret)))
	}
	return request, nil
}

// lost is what a call means that got no whole answer: what was sent to be written may have been.
func (w Web) lost(ctx context.Context, in webInput, err error) error {
	var op *net.OpError
	var dns *net.DNSError
	f, refused := asFailure(err)
	switch {
	case refused:
		return f
	case errors.As(err, &dns), errors.As(err, &op) && op.Op == "dial":
		return failed(IOError, "http.request: the host was not reached: %v", err).next("check that the host is up").again()
	case !in.reads():
		return failed(EffectUnsure, "http.request: %s was sent, and no whole answer came: %v", in.Method, err)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return failed(IOError, "http.request: %v", err).next("try again, or ask the host's owner").again()
}

// Check implements Tool: to read again harms nobody; of a write only its host knows.
func (w Web) Check(_ context.Context, call Call, _ []Evidence) (Checked, error) {
	if in, err := webCall(call); err == nil && in.reads() {
		return Checked{State: NotDone, Why: "it only reads"}, nil
	}
	return Checked{State: Unknown, Why: "the request may have arrived; its Idempotency-Key is the name of the step"}, nil
}
