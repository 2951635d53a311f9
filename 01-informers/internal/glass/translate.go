package glass

import (
	"fmt"
	"time"

	"example.com/workbook/01-informers/internal/handmade"
)

// translate returns an event of the informer in the form of the API. It has only names, resourceVersions and errors.
func translate(happened handmade.Event) Event {
	event := Event{
		Stage: happened.Stage, Type: happened.Type,
		Item: happened.Item, Into: happened.Into, ResourceVersion: happened.ResourceVersion,
		Tombstone: happened.Tombstone, Initial: happened.Initial, Count: happened.Count,
		Attempt: happened.Attempt, DelayMs: happened.Delay.Milliseconds(),
	}
	if happened.Key.Name != "" {
		event.Key = happened.Key.String()
	}
	if event.Key == "" {
		event.Text = textOfPart(happened)
	} else {
		event.Text = textOfItem(happened)
	}
	return event
}

// textOfPart is for events about a part.
func textOfPart(e handmade.Event) string {
	switch string(e.Stage) + "/" + e.Type {
	case "list/started":
		if e.Streamed {
			return "The reflector requests a streaming list"
		}
		return "The reflector sends a list request"
	case "list/ended":
		return fmt.Sprintf("The list is complete: %d objects, at resourceVersion %s", e.Count, e.ResourceVersion)
	case "list/failed":
		return fmt.Sprintf("The list failed: %v", e.Err)
	case "watch/started":
		return fmt.Sprintf("A watch starts after resourceVersion %s", e.ResourceVersion)
	case "watch/BOOKMARK":
		return fmt.Sprintf("A bookmark: the watch has all changes until resourceVersion %s", e.ResourceVersion)
	case "watch/ERROR":
		return fmt.Sprintf("The API server ends the watch: %v", e.Err)
	case "watch/ended":
		return "The watch ended"
	case "watch/failed":
		return fmt.Sprintf("The watch could not start: %v", e.Err)
	case "queue/ReplacedAll":
		return fmt.Sprintf("One delta has the whole list: %d objects", e.Count)
	case "queue/Bookmark":
		return fmt.Sprintf("A delta without an object, with resourceVersion %s", e.ResourceVersion)
	case "store/replace":
		return fmt.Sprintf("The list replaces the content of the store: %d objects", e.Count)
	case "store/bookmark":
		return fmt.Sprintf("The store has all changes until resourceVersion %s", e.ResourceVersion)
	}
	return fmt.Sprintf("%s: %s", e.Stage, e.Type)
}

// textOfItem is for events about one object or key.
func textOfItem(e handmade.Event) string {
	switch e.Stage {
	case handmade.StageList:
		return fmt.Sprintf("The list has %s", e.Key)
	case handmade.StageWatch:
		return fmt.Sprintf("The watch delivers %s for %s", e.Type, e.Key)
	case handmade.StageQueue:
		return fmt.Sprintf("A delta %s for %s is queued", e.Type, e.Key)
	case handmade.StageStore:
		return storeText(e)
	case handmade.StageHandler:
		if e.Initial {
			return fmt.Sprintf("The handler is called: %s %s, of the initial list", e.Type, e.Key)
		}
		return fmt.Sprintf("The handler is called: %s %s", e.Type, e.Key)
	case handmade.StageWaiting:
		return waitingText(e)
	case handmade.StageWorking:
		return fmt.Sprintf("A worker processes %s", e.Key)
	case handmade.StageBackoff:
		return fmt.Sprintf("The work on %s failed (%d in a row): %v. Its backoff is %s", e.Key, e.Attempt, e.Err, e.Delay.Round(time.Millisecond))
	case handmade.StageDone:
		return fmt.Sprintf("The work on %s is done", e.Key)
	}
	return fmt.Sprintf("%s: %s %s", e.Stage, e.Type, e.Key)
}

func storeText(e handmade.Event) string {
	switch {
	case e.Tombstone:
		return fmt.Sprintf("The list does not have %s: it was deleted without an event, and the handler gets a tombstone", e.Key)
	case e.Type == handmade.Delete:
		return fmt.Sprintf("%s is removed from the store", e.Key)
	case e.Type == handmade.Add:
		return fmt.Sprintf("%s is added to the store", e.Key)
	}
	return fmt.Sprintf("%s is updated in the store", e.Key)
}

func waitingText(e handmade.Event) string {
	switch e.Type {
	case handmade.Merged:
		return fmt.Sprintf("The key %s waits already: it is not added again", e.Key)
	case handmade.Dirty:
		return fmt.Sprintf("A worker processes %s: the key is dirty, and is queued when that worker is done", e.Key)
	case handmade.Readded:
		return fmt.Sprintf("The key %s is queued again: it was dirty", e.Key)
	case handmade.Returned:
		return fmt.Sprintf("The backoff of %s has expired: the key is queued again", e.Key)
	}
	return fmt.Sprintf("The key %s waits for a worker", e.Key)
}
