package probe

var appleRecordings = []recording{}

var appleNoInput = map[string]string{}

var appleAnswers = map[string]answer{}
