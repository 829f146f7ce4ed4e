package dispatch

import (
	"bytes"
	"image"
	"image/png"
	"strconv"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// picture is a PNG so wide and high.
func picture(t *testing.T, wide, high int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, wide, high))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// An item that is an image is shown, and the prompt is given its name; images of the request are sent by value once.
func TestImagesAreSent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		one, plan := r.put("photos/one.png", picture(t, 3, 2)), r.put("plan.png", picture(t, 2, 2))
		for i, line := range []bool{false, false, true} {
			a := attempt("k"+strconv.Itoa(i), engine.CallGenerate, `{"prompt":"{{item}}","images":[`+plan+`]}`, one)
			if line {
				a.Line, a.Body = r.at(one+"\n", 0), nil
			}
			if got := r.one(a); got.Failure != nil {
				t.Fatalf("%+v", got.Failure)
			}
			g := r.m.requests()[i].(*workerv1.GenerateRequest)
			if g.GetItem().GetText() != "photos/one.png" || len(g.GetImages()) != 2 {
				t.Fatalf("the item is %q, %d images", g.GetItem().GetText(), len(g.GetImages()))
			}
			shared, own := g.GetImages()[0], g.GetImages()[1]
			if string(own.GetData()) != picture(t, 3, 2) || own.GetName() != "photos/one.png" || own.Text != nil {
				t.Errorf("call %d: the item's image is %q of %d bytes", i, own.GetName(), len(own.GetData()))
			}
			if sent := string(shared.GetData()) == picture(t, 2, 2); sent != (i == 0) || shared.GetSha256() == "" {
				t.Errorf("call %d: the shared image is sent by value: %v", i, sent)
			}
		}
	})
}

func TestAJudgeIsToldThatItIsShownNoImage(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.one(attempt("k", engine.CallEvaluate, `{"criteria":["c"],"model":"j","sources":["the rules",`+r.put("one.png", picture(t, 1, 1))+`]}`, `"the result"`))
		e := r.m.requests()[0].(*workerv1.EvaluateRequest)
		if got := strings.Join(texts(e.GetSources()), "|"); got != "the rules|"+notShown || e.GetSources()[1].GetName() != "one.png" {
			t.Errorf("%q", got)
		}
	})
}

func TestWhatIsNoImageIsNotShown(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		one, text, pdf := r.put("one.png", picture(t, 1, 1)), r.put("notes.png", "a text in spite of its name"), r.put("a.pdf", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
		wide := r.put("wide.png", picture(t, 1, 1)+strings.Repeat("\x00", BodyLimit-1000))
		for name, c := range map[string]struct {
			kind          engine.CallKind
			request, body string
			says          string
		}{
			"a text as an image":     {engine.CallGenerate, `{"prompt":"p","images":[` + text + `]}`, "", "notes.png is no image"},
			"a PDF as an image":      {engine.CallGenerate, `{"prompt":"p","images":[` + pdf + `]}`, "", "a.pdf is neither text in UTF-8 nor an image"},
			"a PDF as an item":       {engine.CallGenerate, `{"prompt":"{{item}}"}`, pdf, "a.pdf is neither text in UTF-8 nor an image"},
			"an image as context":    {engine.CallGenerate, `{"prompt":"p","context":[` + one + `]}`, "", "one.png is an image, and a text is wanted here"},
			"an image to embed":      {engine.CallEmbed, `{"inputs":[` + one + `]}`, "", "one.png is an image"},
			"an image to be judged":  {engine.CallEvaluate, `{"criteria":["c"]}`, one, "one.png is an image"},
			"too large with an item": {engine.CallGenerate, `{"prompt":"{{item}}","images":[` + wide + `]}`, `"` + strings.Repeat("x", 1000) + `"`, "the call in all has"},
		} {
			f := r.one(attempt(name, c.kind, c.request, c.body)).Failure
			if f == nil || f.Kind != run.KindCannotSend || f.Advice != engine.Never || !strings.Contains(f.Message, c.says) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if n := len(r.m.requests()); n > 0 {
			t.Errorf("%d calls were made", n)
		}
	})
}
