package dispatch

import (
	"context"
	"encoding/json"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// notShown stands among a judge's sources for an image: judges are given texts.
const notShown = "(an image, which is not shown)"

// shownAs is the body of an image as models are shown it.
func shownAs(name string, data []byte) *workerv1.Body {
	return &workerv1.Body{Sha256: ledger.Digest(data), Name: name, Bytes: uint64(len(data)), Data: data}
}

// images are the bodies of those that a request names. Whatever else it names is refused: a model would be shown noise.
func (d *Dispatcher) images(ctx context.Context, raws []json.RawMessage) ([]*workerv1.Body, error) {
	var out []*workerv1.Body
	for _, raw := range raws {
		var r ref
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, apierr.Wrap(err, apierr.InvalidArgument, "read which image is meant")
		}
		b, err := d.open(ctx, r)
		if err != nil {
			return nil, err
		}
		if b.Data == nil {
			return nil, apierr.New(apierr.InvalidArgument, "%s is no image", called(r)).WithNext("give PNG, JPEG, WebP or GIF as images")
		}
		out = append(out, b)
	}
	return out, nil
}

// about is the item of a call. One that is an image is shown, and the item is its name.
func (d *Dispatcher) about(ctx context.Context, kind engine.CallKind, raw json.RawMessage) (item, shown *workerv1.Body, err error) {
	b, err := d.body(ctx, raw)
	switch {
	case err != nil || b.GetData() == nil:
		return b, nil, err
	case kind != engine.CallGenerate:
		return nil, nil, isImage(b)
	default:
		return value("", b.Name), b, nil
	}
}

// asText is a body where only texts can be.
func asText(kind engine.CallKind, b *workerv1.Body) (*workerv1.Body, error) {
	switch {
	case b.GetData() == nil:
		return b, nil
	case kind == engine.CallEvaluate:
		return value(b.Name, notShown), nil
	default:
		return nil, isImage(b)
	}
}

func isImage(b *workerv1.Body) error {
	return apierr.New(apierr.InvalidArgument, "%s is an image, and a text is wanted here", called(ref{b.Sha256, b.Name})).
		WithNext("give it as an item or in images of generate or batch")
}
