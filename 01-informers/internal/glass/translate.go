package glass

import (
	"fmt"
	"time"

	"example.com/workbook/01-informers/internal/handmade"
)

// translate puts an event of the informer in the form of the page. Only names, versions and errors are in it.
func translate(happened handmade.Event) Event {
	event := Event{
		Stage: Stage(happened.Stage), Type: happened.Type,
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

// textOfPart is for what happens to a part.
func textOfPart(e handmade.Event) string {
	switch string(e.Stage) + "/" + e.Type {
	case "list/started":
		if e.Streamed {
			return "The reflector asks for the list, streamed as a watch"
		}
		return "The reflector asks for the list, as a list request"
	case "list/ended":
		return fmt.Sprintf("The list is complete: %d objects, as of resourceVersion %s", e.Count, e.ResourceVersion)
	case "list/failed":
		return fmt.Sprintf("The list failed: %v", e.Err)
	case "watch/started":
		return fmt.Sprintf("A watch begins after resourceVersion %s", e.ResourceVersion)
	case "watch/BOOKMARK":
		return fmt.Sprintf("A bookmark: the watch has come to resourceVersion %s", e.ResourceVersion)
	case "watch/ERROR":
		return fmt.Sprintf("The server ends the watch: %v", e.Err)
	case "watch/ended":
		return "The watch is at its end"
	case "watch/failed":
		return fmt.Sprintf("The watch could not begin: %v", e.Err)
	case "queue/ReplacedAll":
		return fmt.Sprintf("One delta holds the whole list: %d objects", e.Count)
	case "queue/Bookmark":
		return fmt.Sprintf("A delta without an object: resourceVersion %s", e.ResourceVersion)
	case "store/replace":
		return fmt.Sprintf("The store's content is replaced by the list: %d objects", e.Count)
	case "store/bookmark":
		return fmt.Sprintf("The store is up to date to resourceVersion %s", e.ResourceVersion)
	}
	return fmt.Sprintf("%s: %s", e.Stage, e.Type)
}

// textOfItem is for what happens to one object or key.
func textOfItem(e handmade.Event) string {
	switch e.Stage {
	case handmade.StageList:
		return fmt.Sprintf("%s comes with the list", e.Key)
	case handmade.StageWatch:
		return fmt.Sprintf("The watch brings %s for %s", e.Type, e.Key)
	case handmade.StageQueue:
		return fmt.Sprintf("A delta %s for %s is queued", e.Type, e.Key)
	case handmade.StageStore:
		return storeText(e)
	case handmade.StageHandler:
		if e.Initial {
			return fmt.Sprintf("The handler is told: %s %s, of the initial list", e.Type, e.Key)
		}
		return fmt.Sprintf("The handler is told: %s %s", e.Type, e.Key)
	case handmade.StageWaiting:
		return waitingText(e)
	case handmade.StageWorking:
		return fmt.Sprintf("A worker takes %s", e.Key)
	case handmade.StageBackoff:
		return fmt.Sprintf("The work on %s failed (%d in a row): %v. It is kept back for %s", e.Key, e.Attempt, e.Err, e.Delay.Round(time.Millisecond))
	case handmade.StageDone:
		return fmt.Sprintf("The work on %s is done", e.Key)
	}
	return fmt.Sprintf("%s: %s %s", e.Stage, e.Type, e.Key)
}

func storeText(e handmade.Event) string {
	switch {
	case e.Tombstone:
		return fmt.Sprintf("%s is not in the list: it was deleted unseen, and leaves the store as a tombstone", e.Key)
	case e.Type == handmade.Delete:
		return fmt.Sprintf("%s leaves the store", e.Key)
	case e.Type == handmade.Add:
		return fmt.Sprintf("%s is new in the store", e.Key)
	}
	return fmt.Sprintf("%s takes the place of its older version in the store", e.Key)
}

func waitingText(e handmade.Event) string {
	switch e.Type {
	case handmade.Merged:
		return fmt.Sprintf("The key %s was there already: nothing is added", e.Key)
	case handmade.Dirty:
		return fmt.Sprintf("A worker has %s in hand: the key will wait when that is done", e.Key)
	case handmade.Readded:
		return fmt.Sprintf("The key %s waits again: it changed while a worker had it", e.Key)
	case handmade.Returned:
		return fmt.Sprintf("The back-off of %s is over: the key waits again", e.Key)
	}
	return fmt.Sprintf("The key %s waits for a worker", e.Key)
}
