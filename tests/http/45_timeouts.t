# Connections that end because their client is slow. No play here depends on how fast its client is:
# each ends in the same way when the client is delayed.
option --header-timeout=300ms --body-timeout=300ms --idle-timeout=400ms
model add

play a head that has no end
>> GET /v2 HTTP/1.1\r\nHost
< 408
closed

play a body that does not come
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Content-Length: 100
>
< 408
closed

play a body that comes in pieces and then stops
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Content-Length: 100
>
wait 0.2
>> {
wait 0.2
>> "
wait 0.2
>> a
< 408
closed

play an idle connection is closed without an answer
closed

play so is a connection that is idle after an answer
get /v2/health/live
< 200
closed
