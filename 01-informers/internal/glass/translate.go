package glass

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/workbook/01-informers/internal/handmade"
)

// translate returns an event of the informer in the form of the API. It has only names, resourceVersions and errors.
func translate(happened handmade.Event) Event {
	event := Event{Event: happened, Key: keyOf(happened), DelayMs: happened.Delay.Milliseconds()}
	event.Text = text(happened, event.Key)
	return event
}

// keyOf returns the key of an event, or nothing if it is not about one item.
func keyOf(event handmade.Event) string {
	if event.Key.Name == "" {
		return ""
	}
	return event.Key.String()
}

// texts are the sentences for the users of the page, by stage and type; of items, also by stage alone.
var texts = map[string]string{
	"list/streamed":     "The reflector requests a streaming list",
	"list/started":      "The reflector sends a list request",
	"list/ended":        "The list is complete: {count} objects, at resourceVersion {version}",
	"list/failed":       "The list failed: {error}",
	"watch/started":     "A watch starts after resourceVersion {version}",
	"watch/BOOKMARK":    "A bookmark: the watch has all changes until resourceVersion {version}",
	"watch/ERROR":       "The API server ends the watch: {error}",
	"watch/ended":       "The watch ended",
	"watch/failed":      "The watch could not start: {error}",
	"queue/ReplacedAll": "One delta has the whole list: {count} objects",
	"queue/Bookmark":    "A delta without an object, with resourceVersion {version}",
	"store/replace":     "The list replaces the content of the store: {count} objects",
	"store/bookmark":    "The store has all changes until resourceVersion {version}",
}

var itemTexts = map[string]string{
	"list":             "The list has {key}",
	"watch":            "The watch delivers {type} for {key}",
	"queue":            "A delta {type} for {key} is queued",
	"store/add":        "{key} is added to the store",
	"store/update":     "{key} is updated in the store",
	"store/delete":     "{key} is removed from the store",
	"store/tombstone":  "The list does not have {key}: it was deleted without an event, and the handler gets a tombstone",
	"handler":          "The handler is called: {type} {key}",
	"handler/initial":  "The handler is called: {type} {key}, of the initial list",
	"waiting/added":    "The key {key} waits for a worker",
	"waiting/merged":   "The key {key} waits already: it is not added again",
	"waiting/dirty":    "A worker processes {key}: the key is dirty, and is queued when that worker is done",
	"waiting/readded":  "The key {key} is queued again: it was dirty",
	"waiting/returned": "The backoff of {key} has expired: the key is queued again",
	"working":          "A worker processes {key}",
	"backoff":          "The work on {key} failed ({attempt} in a row): {error}. Its backoff is {delay}",
	"done":             "The work on {key} is done",
}

func text(e handmade.Event, key string) string {
	of, what := texts, e.Type
	switch {
	case e.Streamed:
		what = "streamed"
	case e.Tombstone && e.Stage == handmade.StageStore:
		what = "tombstone"
	case e.Initial && e.Stage == handmade.StageHandler:
		what = "initial"
	}
	if key != "" {
		of = itemTexts
	}
	text := cmp.Or(of[string(e.Stage)+"/"+what], of[string(e.Stage)], "{type}")
	return strings.NewReplacer("{key}", key, "{type}", e.Type, "{count}", strconv.Itoa(e.Count), "{version}", e.ResourceVersion,
		"{error}", fmt.Sprint(e.Err), "{attempt}", strconv.Itoa(e.Attempt), "{delay}", e.Delay.Round(time.Millisecond).String()).Replace(text)
}
