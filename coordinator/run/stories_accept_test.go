package run

const fileItems = `"items":[{"bytes":1,"name":"a.md","ref":"aa"},{"bytes":1,"name":"b.md","ref":"bb"}],"model":"small","prompt":"{{item}}"`

var acceptStories = map[string]func(*tape){
	"submitted-and-missing": func(tp *tape) { // c.md was filtered out, e.md never created
		tp.ask(KindExpect, `{"keys":["d.md","e.md"]}`)
		tp.ask(KindBatch, `{`+fileItems+`}`)
		tp.succeed(tp.place(1, 0, "n1"), `1`)
		tp.fail(tp.place(1, 1, "n1"), "input_too_long", Never)
		tp.ask(KindGenerate, `{"item":{"bytes":1,"name":"d.md","ref":"dd"},"model":"small","prompt":"{{item}}"}`)
		tp.succeed(tp.place(2, 0, "n1"), `1`)
		tp.returns()
		tp.want(Incomplete)
	},
	"chunks-and-lines": func(tp *tape) {
		tp.do(Yield{Requests: []Request{{Pos: 0, Kind: KindBatch, Lines: &Lines{Count: 4, Index: "ee"},
			Body: []byte(`{"items":{"lines":{"bytes":40,"name":"data.jsonl","ref":"dd"}},"model":"small","prompt":"{{item}}","retry":{"attempts":1}}`)}}})
		for i := range 3 {
			tp.succeed(tp.place(0, i, "n1"), `1`)
		}
		tp.fail(tp.place(0, 3, "n1"), "empty_turn", Changed)
		tp.ask(KindGenerate, `{"item":"lines 4 and so on","model":"small","prompt":"{{item}}"}`)
		tp.succeed(tp.place(1, 0, "n1"), `{"line 4":"good"}`)
		tp.ask(KindCover, `{"keys":["data.jsonl:4"],"step":1}`)
		tp.ask(KindCover, `{"keys":["x.md"]}`)
		tp.ask(KindFallback, `{"by":1,"item":3,"step":0}`)
		tp.ask(KindOutput, `{"name":"o","sources":[0,1],"value":1}`)
		tp.returns()
		tp.want(Completed)
	},
	"waived-and-made-good": func(tp *tape) {
		tp.ask(KindBatch, `{`+fileItems+`}`)
		tp.succeed(tp.place(0, 0, "n1"), `1`)
		tp.fail(tp.place(0, 1, "n1"), "input_too_long", Never)
		tp.ask(KindWaive, `{"key":"b.md","reason":"it is a scan","step":0}`)
		tp.ask(KindWaive, `{"key":"c.md","reason":"it is empty"}`)
		tp.ask(KindGenerate, `{"item":{"bytes":1,"name":"d.md","ref":"dd"},"model":"huge","prompt":"{{item}}"}`)
		tp.fail(tp.place(3, 0, "n1"), "input_too_long", Never)
		tp.ask(KindGenerate, `{"item":"d, shortened","model":"small","prompt":"{{item}}"}`)
		tp.succeed(tp.place(4, 0, "n1"), `1`)
		tp.ask(KindFallback, `{"by":4,"step":3}`)
		tp.ask(KindCollected, `{"failures":[{"key":"c.md","message":"nothing to read"}],"label":"each"}`)
		tp.ask(KindOutput, `{"name":"o","sources":[0,3],"value":1}`)
		tp.returns()
		tp.want(Completed)
	},
	"notes-that-count-against": func(tp *tape) {
		tp.ask(KindUntil, `{"label":"all green","reached":false,"round":1}`)
		tp.ask(KindUntil, `{"label":"all green","reached":false,"round":2}`)
		tp.ask(KindUntil, `{"label":"polished","reached":false,"round":1}`)
		tp.ask(KindUntil, `{"label":"polished","reached":true,"round":2}`)
		tp.ask(KindWaive, `{"step":0}`)              // no reason
		tp.ask(KindExpect, `{"keys":"all"}`)         // no list
		tp.ask(KindFallback, `{"by":99,"step":98}`)  // about nothing: counts for nothing
		tp.ask(KindWaive, `{"reason":"r","step":7}`) // nothing failed there
		tp.returns()
		tp.want(Incomplete)
	},
	"pages": func(tp *tape) {
		tp.ask(KindBatch, `{`+fileItems+`}`)
		tp.ask(KindPage, `{"from":0,"step":0}`) // it has not ended
		tp.succeed(tp.place(0, 0, "n1"), `1`)
		tp.succeed(tp.place(0, 1, "n1"), `2`)
		tp.ask(KindPage, `{"count":1,"from":0,"step":0}`)
		tp.ask(KindPage, `{"count":1,"from":1,"only":"failed","step":0}`)
		tp.ask(KindPage, `{"count":2000,"step":0}`) // too many
		tp.returns()
		tp.want(Incomplete)
	},
}
