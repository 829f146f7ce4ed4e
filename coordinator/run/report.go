package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
)

// PageLimit is the most items that one delivery holds. A larger batch delivers a handle and is read by pages.
const PageLimit = 1000

// Page is a part of a batch's result on its way to the script. Values that the state does not keep are named by their events.
type Page struct {
	Items []PageItem
	batch *Counts // set for a batch's own delivery
	next  *int
}

// PageItem is one item as the script sees it.
type PageItem struct {
	Bytes   int64           `json:"bytes,omitempty"`
	Failure *itemFailure    `json:"failure,omitempty"`
	Index   int             `json:"index"`
	Key     string          `json:"key"`
	Ref     string          `json:"ref,omitempty"`
	Status  StepStatus      `json:"status"`
	Value   json.RawMessage `json:"value,omitempty"`
	Event   int64           `json:"-"` // the event that has Value or Ref, 0 when they are here
}

type itemFailure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// Fill sets what an item's event has, see ResultOf.
func (i *PageItem) Fill(c Content) { i.Bytes, i.Ref, i.Value, i.Event = c.Bytes, c.Ref, c.Value, 0 }

// Value is the page as it is delivered. Every item must have been filled. The fields are in the order of their names, because
// values cross the border as canonical JSON.
func (p *Page) Value() (json.RawMessage, error) {
	for i := range p.Items {
		if p.Items[i].Event != 0 {
			return nil, fmt.Errorf("the value of item %d was not read", p.Items[i].Index)
		}
	}
	if c := p.batch; c != nil {
		return marshal(struct {
			Coverage  float64    `json:"coverage"`
			Failed    int        `json:"failed"`
			Items     []PageItem `json:"items"`
			Succeeded int        `json:"succeeded"`
			Total     int        `json:"total"`
		}{c.Coverage(), c.Failed, p.Items, c.Succeeded, c.Total})
	}
	return marshal(struct {
		Items []PageItem `json:"items"`
		Next  *int       `json:"next"`
	}{p.Items, p.next})
}

// ResultOf returns the result that an event has, false when it is of a kind that has none.
func ResultOf(p Payload) (Content, bool) {
	switch p := p.(type) {
	case *AttemptSucceeded:
		return resultOf(p), true
	case *ItemReused:
		return p.Result, true
	case *ItemResolved:
		return p.Result, true
	case *StepEnded:
		return p.Result, true
	default:
		return Content{}, false
	}
}

// Concluded is the verdict that came of a judge's attempt, nil when another judge was asked. Judges of before there were panels gave it
// themselves.
func (p *AttemptSucceeded) Concluded() json.RawMessage {
	if p.Verdict != nil || p.Then == ThenJudge {
		return p.Verdict
	}
	return p.Result.Value
}

// resultOf is what an attempt made: of the last judge of an evaluate the verdict, of a judge of an item's result its judgement.
func resultOf(p *AttemptSucceeded) Content {
	if p.Phase == Work && p.Verdict != nil {
		return Content{Value: p.Verdict}
	}
	return p.Result
}

func (st *Step) pageItem(i int) PageItem {
	it := &st.Items[i]
	r := PageItem{Index: i, Key: st.ItemKey(i), Status: it.Status}
	switch {
	case it.Status == StepSucceeded && it.Result.Empty():
		r.Event = it.Event
	case it.Status == StepSucceeded:
		r.Bytes, r.Ref, r.Value = it.Result.Bytes, it.Result.Ref, it.Result.Value
	case it.Failure != nil:
		r.Failure = &itemFailure{it.Failure.Kind, it.Failure.Message}
	}
	return r
}

// report is a batch's result: every item in input order, whatever became of it.
func (st *Step) report() *Page {
	p := &Page{batch: &st.Counts, Items: make([]PageItem, len(st.Items))}
	for i := range st.Items {
		p.Items[i] = st.pageItem(i)
	}
	return p
}

// handleValue is a large batch's result: how it went, and where its pages are.
func (st *Step) handleValue() (json.RawMessage, error) {
	c := st.Counts
	return marshal(struct {
		Coverage  float64 `json:"coverage"`
		Failed    int     `json:"failed"`
		Handle    int     `json:"handle"`
		Succeeded int     `json:"succeeded"`
		Total     int     `json:"total"`
	}{c.Coverage(), c.Failed, st.Pos, c.Succeeded, c.Total})
}

// pageSpec is what a page request says.
type pageSpec struct {
	Step  *int   `json:"step"`
	From  int    `json:"from"`
	Count int    `json:"count"`
	Only  string `json:"only"`
}

func (p *pageSpec) checkPage(string) error {
	if p.Step == nil {
		return errors.New("page: no step is named")
	}
	if p.Count == 0 {
		p.Count = PageLimit
	}
	return nil
}

// page settles a page request: what it asks for is there or not. The items follow from the state, see Settle.
func (s *State) page(st *Step) Payload {
	batch := s.Step(*st.spec.Step)
	if batch == nil || batch.Kind != KindBatch || !batch.Status.Ended() || len(batch.Items) == 0 && batch.Failure != nil {
		return &StepEnded{Pos: st.Pos, Status: StepFailed, Failure: &Failure{Kind: KindBadRequest, Advice: Never,
			Message: fmt.Sprintf("page: step %d is no batch that has ended", *st.spec.Step)}}
	}
	return &StepEnded{Pos: st.Pos, Status: StepSucceeded}
}

// pageOf is what a page request that succeeded is given, in time that grows with the page and not with the batch.
func (s *State) pageOf(body json.RawMessage) (*Page, error) {
	var sp pageSpec
	if err := json.Unmarshal(body, &sp); err != nil || sp.checkPage("") != nil || s.Step(*sp.Step) == nil {
		return nil, errors.New("the page request does not parse")
	}
	batch := s.Step(*sp.Step)
	p := &Page{Items: []PageItem{}}
	i, ok := batch.seek(sp.From, sp.Only)
	for ; ok && len(p.Items) < sp.Count; i, ok = batch.seek(i+1, sp.Only) {
		p.Items = append(p.Items, batch.pageItem(i))
	}
	if ok {
		p.next = &i
	}
	return p, nil
}

// seek finds the first item from i on that a page wants. The step has ended, so its failed items are in order.
func (st *Step) seek(i int, only string) (int, bool) {
	switch only {
	case string(StepFailed):
		at := sort.SearchInts(st.Failed, i)
		if at == len(st.Failed) {
			return 0, false
		}
		return st.Failed[at], true
	case string(StepSucceeded):
		for at := sort.SearchInts(st.Failed, i); at < len(st.Failed) && st.Failed[at] == i; at++ {
			i++
		}
	}
	return i, i < len(st.Items)
}
